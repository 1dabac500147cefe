//! An approval with its packet, its state and the next step, for a person who rules on it.

use herma_core::approval::{Approval, ApprovalRequest, ApprovalState, Binding};
use herma_core::store::{RunQuery, StoreError};
use herma_core::visible::visible_line;
use herma_core::{Contract, Stage};
use herma_harness::{Installation, PolicyError};
use herma_rules::egress_digest;
use herma_trust::{BadRequest, Packet};

use crate::output::ApprovalOutput;

/// How many of the newest runs are searched for those of the contract.
const MAX_SEARCHED_RUNS: u32 = 1_000;
/// How many runs of the contract are listed.
const MAX_LISTED_RUNS: usize = 5;

/// The sheet of an approval cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum SheetError {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The policies cannot be used.
    #[error(transparent)]
    Policy(#[from] PolicyError),
}

/// An approval with its packet.
pub struct ApprovalSheet {
    /// The approval.
    pub approval: Approval,
    /// Its state now.
    pub state: ApprovalState,
    /// The packet, or why the request cannot be shown any more.
    pub packet: Result<Packet, BadRequest>,
    /// Why the ruling of a granted approval does not count.
    pub void: Option<String>,
}

impl ApprovalSheet {
    /// The sheet of an approval of this installation.
    pub fn new(installation: &Installation, approval: Approval) -> Result<Self, SheetError> {
        let evidence = evidence(installation, &approval.request.binding)?;
        let packet = Packet::of(
            &approval,
            &installation.approvers(),
            evidence,
            reached_by_all(installation, &approval.request),
            installation.policies()?.digest(),
        );
        let state = approval.state_at(installation.now());
        let void = void(installation, &approval).filter(|_| state == ApprovalState::Granted);
        Ok(Self { approval, state, packet, void })
    }

    /// The packet in lines, or one line with the reason why it cannot be shown.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        match &self.packet {
            Ok(packet) => packet.lines(),
            Err(why) => vec![format!("The packet cannot be shown: {}", visible_line(&why.to_string()))],
        }
    }

    /// The sheet as output.
    #[must_use]
    pub fn output(&self) -> ApprovalOutput {
        let open = self.state == ApprovalState::Requested;
        ApprovalOutput {
            schema: "herma.approval/v1",
            approval_id: self.approval.request.id,
            state: self.state,
            void: self.void.clone(),
            packet: self.lines(),
            code: self.packet.as_ref().ok().filter(|_| open).map(|packet| packet.code().to_owned()),
            copy_text: None,
            approval: self.approval.clone(),
            next_step: self.next_step(),
        }
    }

    /// The next step for a person.
    #[must_use]
    pub fn next_step(&self) -> Option<String> {
        let request = &self.approval.request;
        match self.state {
            ApprovalState::Requested => {
                let id = request.id.short();
                Some(format!("an approver reads it and says `herma approvals grant {id} --reason TEXT`"))
            }
            ApprovalState::Granted if self.void.is_some() => {
                Some("ask for a new one with `herma approvals request`".to_owned())
            }
            ApprovalState::Granted => {
                Some(format!("run the contract with `herma run --engine {}`", request.binding.engine))
            }
            ApprovalState::Denied | ApprovalState::Expired | ApprovalState::Consumed => None,
        }
    }
}

/// The hosts that every run of the installation may reach. If they changed since the request, a run of it would be void.
fn reached_by_all(installation: &Installation, request: &ApprovalRequest) -> Vec<String> {
    let changed = || vec!["not what it was when this was asked for: a run of it would be void".to_owned()];
    let Ok(contract) = Contract::parse(request.contract_text.as_bytes()) else { return Vec::new() };
    match installation.egress_of(Some(&contract)) {
        Ok(of_run) if egress_digest(&contract.terms, &of_run.rules()) == request.binding.egress_digest => {
            of_run.of_installation()
        }
        _ => changed(),
    }
}

/// Why a ruling does not count.
fn void(installation: &Installation, approval: &Approval) -> Option<String> {
    let ruling = approval.ruling.as_ref()?;
    if ruling.record.request != approval.request {
        return Some("the ruling is about another request".to_owned());
    }
    installation.approvers().check(ruling, &ruling.record.approver).err().map(|why| why.to_string())
}

/// The evidence so far: the proven stages of the engine, and the newest runs of the contract.
fn evidence(installation: &Installation, binding: &Binding) -> Result<Vec<String>, StoreError> {
    let name = &binding.engine;
    let mut lines = Vec::new();
    if let Some(engine) = installation.engines().get(name) {
        let proofs = installation.proofs();
        let proven = Stage::ALL.into_iter().take_while(|stage| proofs.status(engine, *stage).holds()).last();
        lines.push(match proven {
            Some(stage) if engine.built_in() && stage <= Stage::CopiedRepo => {
                format!("{name} is part of herma and needs no proof of the stages up to {stage}")
            }
            Some(stage) => format!("{name} has proven the stages up to {stage}"),
            None => format!("{name} has proven no stage"),
        });
    }
    let query = RunQuery { limit: MAX_SEARCHED_RUNS, before: None, status: None };
    let runs = installation.store.call(|store| store.runs(&query))?;
    let of_contract = runs.iter().filter(|run| run.contract_id == binding.contract_id);
    lines.extend(of_contract.take(MAX_LISTED_RUNS).map(|run| {
        let status = run.status.map_or("under way", |status| status.as_str());
        let same =
            if run.contract_digest == binding.contract_digest { "" } else { ", of another version of it" };
        format!(
            "run {} of this contract: {status}, stage {} with {} on {}{same}",
            run.run_id.short(),
            run.stage,
            run.engine,
            run.started_at.strftime("%Y-%m-%d %H:%M:%SZ")
        )
    }));
    Ok(lines)
}
