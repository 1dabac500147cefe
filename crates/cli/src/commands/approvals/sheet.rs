//! An approval as a person reads it: the packet, where it stands, and who said what.

use std::process::ExitCode;

use herma_core::approval::{Answer, Approval, ApprovalRequest, ApprovalState, Binding};
use herma_core::store::{RunQuery, Store as _};
use herma_core::visible::visible_line;
use herma_core::{Clock as _, Contract, Stage};
use herma_harness::{Installation, SystemClock};
use herma_rules::egress_digest;
use herma_trust::Packet;

use super::tone;
use crate::commands::Ended;
use crate::failure::Failure;
use crate::output::ApprovalOutput;
use crate::screen::{Screen, Tone};

/// How many of the newest runs are looked through for those of the contract, and how many of these are shown.
const RUNS: (u32, usize) = (1_000, 5);

/// What the installation lets every run reach, for who rules on a request. An older request was made under what it allowed
/// then, which nobody knows any more.
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

/// An approval with its packet.
pub(super) struct Sheet {
    approval: Approval,
    state: ApprovalState,
    /// None for a request that nobody can be shown any more, with the reason.
    packet: Result<Packet, String>,
    void: Option<String>,
}

impl Sheet {
    pub(super) fn new(installation: &Installation, approval: Approval) -> Result<Self, Failure> {
        let evidence = evidence(installation, &approval.request.binding)?;
        let packet = Packet::of(
            &approval,
            &installation.approvers(),
            evidence,
            reached_by_all(installation, &approval.request),
            installation.policies().map_err(Failure::bad_input)?.digest(),
        )
        .map_err(|why| why.to_string());
        let state = approval.state_at(SystemClock.now());
        let void = void(installation, &approval).filter(|_| state == ApprovalState::Granted);
        Ok(Self { approval, state, packet, void })
    }

    pub(super) fn approval(&self) -> &Approval {
        &self.approval
    }

    /// The packet; what cannot be shown cannot be granted.
    pub(super) fn packet(&self) -> Result<&Packet, Failure> {
        self.packet.as_ref().map_err(|why| {
            let id = self.approval.request.id;
            Failure::blocked(format!("approval {id} cannot be shown: {}", visible_line(why)))
                .hint("ask for a new one with `herma approvals request`")
        })
    }

    fn lines(&self) -> Vec<String> {
        match &self.packet {
            Ok(packet) => packet.lines(),
            Err(why) => vec![format!("The packet cannot be shown: {}", visible_line(why))],
        }
    }

    /// The packet, for a person who is about to rule on it.
    pub(super) fn show(&self, screen: &Screen) {
        if screen.is_json() {
            return;
        }
        for line in self.lines() {
            screen.line(line);
        }
        screen.line("");
    }

    /// The packet as a text to copy, and nothing else.
    pub(super) fn copy(&self, screen: &Screen) -> Ended {
        if screen.is_json() {
            let copy_text = Some(self.packet()?.copy_text());
            screen.value(&ApprovalOutput { copy_text, ..self.output() })?;
        } else {
            screen.bytes(self.packet()?.copy_text().as_bytes());
        }
        Ok(ExitCode::SUCCESS)
    }

    /// Everything, as the end of a command.
    pub(super) fn finish(&self, screen: &Screen) -> Ended {
        self.show(screen);
        self.conclude(screen)
    }

    /// Where it stands, as the end of a command that has shown the packet.
    pub(super) fn conclude(&self, screen: &Screen) -> Ended {
        if screen.is_json() {
            screen.value(&self.output())?;
            return Ok(ExitCode::SUCCESS);
        }
        let Approval { request, ruling, consumed_by, .. } = &self.approval;
        let state = screen.paint(tone(self.state), self.state.as_str());
        screen.line(format_args!("approval  {}", request.id));
        screen.line(format_args!("state     {state}, until {}", request.expires_at));
        if let Some(ruling) = ruling.as_ref().map(|signed| &signed.record) {
            let word = match ruling.answer {
                Answer::Granted => "granted",
                Answer::Denied => "denied",
            };
            let reason = visible_line(&ruling.reason);
            screen.line(format_args!("{word:9} by {} on {}: {reason}", ruling.approver, ruling.at));
        }
        if let Some(why) = &self.void {
            let void = screen.paint(Tone::Bad, "void     ");
            screen.line(format_args!("{void} {}", visible_line(why)));
        }
        if let Some(run) = consumed_by {
            screen.line(format_args!("used      by run {run}"));
        }
        if let Some(next) = self.next_step() {
            screen.line(format_args!("{} {next}", screen.paint(Tone::Bold, "next:")));
        }
        Ok(ExitCode::SUCCESS)
    }

    fn output(&self) -> ApprovalOutput {
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

    fn next_step(&self) -> Option<String> {
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

/// Why a ruling does not count.
fn void(installation: &Installation, approval: &Approval) -> Option<String> {
    let ruling = approval.ruling.as_ref()?;
    if ruling.record.request != approval.request {
        return Some("the ruling is about another request".to_owned());
    }
    installation.approvers().check(ruling, &ruling.record.approver).err()
}

/// What there is so far: what the engine has proven, and the newest runs of the contract.
fn evidence(installation: &Installation, binding: &Binding) -> Result<Vec<String>, Failure> {
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
    let (look_through, shown) = RUNS;
    let runs = installation.store.runs(&RunQuery { limit: look_through, before: None, status: None })?;
    let of_contract = runs.iter().filter(|run| run.contract_id == binding.contract_id);
    lines.extend(of_contract.take(shown).map(|run| {
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
