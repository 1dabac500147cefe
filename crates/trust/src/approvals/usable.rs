//! Finds the approval that is bound to exactly this run, and consumes it.

use herma_core::approval::{Answer, Approval, ApprovalState, Binding, Moved, Ruling};
use herma_core::blocker::{Blocker, BlockerRecord};
use herma_core::signed::Signed;
use herma_core::store::StoreError;
use herma_core::visible::visible_line;
use herma_core::{Contract, RunId, Timestamp};
use herma_store::BlockingStore;

use super::signatures::SignatureCheck;

/// How many approvals of other contracts are looked at, for the message only.
const NEAREST: u32 = 1_000;

/// An approval that can be used: granted, in time, signed, and of exactly this run.
#[derive(Clone, Debug)]
pub struct UsableApproval {
    /// The approval.
    pub approval: Approval,
}

/// Finds an approval that is bound to exactly this. Without one, the blocker gives the most specific reason.
pub fn find_usable(
    store: &BlockingStore,
    signatures: &dyn SignatureCheck,
    binding: &Binding,
    now: Timestamp,
    separation: bool,
) -> Result<UsableApproval, BlockerRecord> {
    let unreadable = |e: StoreError| void(&format!("the approvals could not be read: {e}"));
    store.call(|store| store.expire_approvals(now)).map_err(unreadable)?;
    let contract = Some(&binding.contract_id);
    let of_contract = store.call(|store| store.approvals(contract, u32::MAX)).map_err(unreadable)?;
    let (same, changed): (Vec<_>, Vec<_>) =
        of_contract.into_iter().partition(|approval| approval.request.binding == *binding);

    let judge = Judge { signatures, now, separation };
    let mut flaws = Vec::new();
    for approval in same {
        match judge.usable(&approval) {
            Ok(()) => return Ok(UsableApproval { approval }),
            Err(why) => flaws.push((approval, why)),
        }
    }
    // The newest is the most specific, unless it is a request that expired without a ruling.
    let unanswered =
        |approval: &Approval| approval.ruling.is_none() && approval.state_at(now) == ApprovalState::Expired;
    let telling = flaws.iter().position(|(approval, _)| !unanswered(approval)).unwrap_or(0);
    if let Some((_, why)) = flaws.into_iter().nth(telling) {
        return Err(why);
    }

    let is_granted = |approval: &&Approval| approval.state_at(now) == ApprovalState::Granted;
    if let Some(other) = changed.iter().find(is_granted).or(changed.first()) {
        let state = other.state_at(now).as_str();
        return Err(void(&format!(
            "{} ({state}) is not of this run: {}",
            name(other),
            changes(other, binding)
        )));
    }
    let none = "there is no approval of this contract";
    let others = store.call(|store| store.approvals(None, NEAREST)).map_err(unreadable)?;
    let near = |approval: &&Approval| {
        let other = &approval.request.binding;
        other.target == binding.target && other.engine == binding.engine && is_granted(approval)
    };
    Err(void(&match others.iter().find(near) {
        Some(other) => format!("{none}; the nearest is {}: {}", name(other), changes(other, binding)),
        None => format!("{none}; ask with `herma approvals request`"),
    }))
}

/// The result of consuming an approval.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Consumption {
    /// The approval belongs to this run.
    Consumed,
    /// The run cannot have it.
    Blocked(BlockerRecord),
}

/// Consumes the approval for this run. Of two runs that race for it, one gets it and the other gets the blocker. After
/// a store error the owner is unknown, and nothing may start.
pub fn consume(
    store: &BlockingStore,
    usable: &UsableApproval,
    run: RunId,
    now: Timestamp,
) -> Result<Consumption, StoreError> {
    let (id, name) = (usable.approval.request.id, name(&usable.approval));
    let state = match store.call(|store| store.consume_approval(id, run, now))? {
        Moved::Done => return Ok(Consumption::Consumed),
        Moved::Stood(state) => state,
        Moved::Unknown => {
            return Ok(Consumption::Blocked(void(&format!("{name} is not in the store any more"))));
        }
    };
    Ok(Consumption::Blocked(match state {
        ApprovalState::Consumed => {
            let id = id.to_string();
            let found = store.call(|store| store.find_approvals(&id))?.pop();
            let by = found.and_then(|approval| approval.consumed_by);
            // Recovery in another process has seen this run's mark, and brought the store in step with it.
            if by == Some(run) {
                return Ok(Consumption::Consumed);
            }
            consumed(&name, by)
        }
        ApprovalState::Expired => expired(&usable.approval),
        ApprovalState::Denied => because(Blocker::ApprovalDenied, &format!("{name} was denied")),
        ApprovalState::Requested | ApprovalState::Granted => {
            void(&format!("{name} could not be used: the store says that it is {}", state.as_str()))
        }
    }))
}

/// Judges an approval that has the right binding.
struct Judge<'a> {
    signatures: &'a dyn SignatureCheck,
    now: Timestamp,
    separation: bool,
}

impl Judge<'_> {
    /// Whether the approval can be used, given that it is bound to the right things.
    fn usable(&self, approval: &Approval) -> Result<(), BlockerRecord> {
        let (name, request) = (name(approval), &approval.request);
        match approval.state_at(self.now) {
            ApprovalState::Granted => {
                let ruling = self.ruling(approval, Answer::Granted)?;
                self.in_order(approval, &ruling.record)?;
                shown(approval)?;
                if self.separation { self.separate(approval, ruling) } else { Ok(()) }
            }
            ApprovalState::Requested => Err(void(&format!(
                "requested, not granted: {name} was asked for by `{}` and waits for a person's word",
                request.requested_by
            ))),
            ApprovalState::Denied => {
                let Ruling { approver, reason, .. } = &self.ruling(approval, Answer::Denied)?.record;
                Err(because(Blocker::ApprovalDenied, &format!("`{approver}` denied {name}: {reason}")))
            }
            ApprovalState::Expired => Err(expired(approval)),
            ApprovalState::Consumed => Err(consumed(&name, approval.consumed_by)),
        }
    }

    /// The signed ruling behind the state in the store. The state alone does not count.
    fn ruling<'a>(
        &self,
        approval: &'a Approval,
        answer: Answer,
    ) -> Result<&'a Signed<Ruling>, BlockerRecord> {
        let (name, state) = (name(approval), approval.state.as_str());
        let Some(signed) = &approval.ruling else {
            return Err(void(&format!("{name} is called {state}, and nobody's signature is under it")));
        };
        self.signatures
            .ruling(signed)
            .map_err(|why| void(&format!("the signature under {name} does not count: {why}")))?;
        let Ruling { id, request, answer: answered, approver, .. } = &signed.record;
        if *id != approval.request.id || *request != approval.request {
            let what = request.binding.changes(&approval.request.binding);
            let what: Vec<_> = what.iter().map(|change| format!("; {change}")).collect();
            return Err(void(&format!(
                "what `{approver}` signed is another request than the one of {name}{}",
                what.concat()
            )));
        }
        if *answered != answer {
            return Err(void(&format!("{name} is called {state}, and that is not what `{approver}` signed")));
        }
        Ok(signed)
    }

    /// It was asked for, then granted, and both are past: a clock that was set back is no way to use it.
    fn in_order(&self, approval: &Approval, ruling: &Ruling) -> Result<(), BlockerRecord> {
        let (name, asked, granted, now) =
            (name(approval), approval.request.requested_at, ruling.at, self.now);
        if granted < asked {
            return Err(void(&format!(
                "{name} was granted at {granted}, before it was asked for at {asked}; ask for a new one"
            )));
        }
        if now < granted {
            return Err(void(&format!(
                "{name} was granted at {granted}, and the clock says {now}: set the clock right, or ask for a new one"
            )));
        }
        Ok(())
    }

    /// Requester and approver are different people, and both signed.
    fn separate(&self, approval: &Approval, ruling: &Signed<Ruling>) -> Result<(), BlockerRecord> {
        let (name, on) = (name(approval), "separation of duties is on");
        let Some(signed) = &approval.signed_request else {
            return Err(void(&format!("{on}, and the request of {name} is not signed by who made it")));
        };
        self.signatures
            .request(signed)
            .map_err(|why| void(&format!("{on}, and the request of {name} does not count: {why}")))?;
        if signed.record != approval.request {
            return Err(void(&format!(
                "{on}, and what was signed is another request than the one of {name}"
            )));
        }
        let approver = &ruling.record.approver;
        if signed.record.requested_by == approver.as_str() || signed.key_id == ruling.key_id {
            return Err(void(&format!("{on}, and `{approver}` both asked for {name} and granted it")));
        }
        Ok(())
    }
}

/// The contract that the person was shown is the one that the approval is bound to.
fn shown(approval: &Approval) -> Result<(), BlockerRecord> {
    let digest =
        Contract::parse(approval.request.contract_text.as_bytes()).ok().and_then(|shown| shown.digest().ok());
    if digest == Some(approval.request.binding.contract_digest) {
        return Ok(());
    }
    Err(void(&format!(
        "the contract in the request of {} is not the one that it is bound to",
        name(approval)
    )))
}

fn name(approval: &Approval) -> String {
    format!("approval {}", approval.request.id.short())
}

fn changes(approved: &Approval, now: &Binding) -> String {
    let changes = approved.request.binding.changes(now);
    changes.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

fn expired(approval: &Approval) -> BlockerRecord {
    let (name, until) = (name(approval), approval.request.expires_at);
    let never = if approval.ruling.is_none() { ", and nobody had granted it" } else { "" };
    because(Blocker::ApprovalExpired, &format!("{name} was good until {until}{never}"))
}

fn consumed(name: &str, by: Option<RunId>) -> BlockerRecord {
    let by = by.map_or_else(|| "another run".to_owned(), |run| format!("run {run}"));
    because(Blocker::ApprovalAlreadyConsumed, &format!("{name} was used by {by}"))
}

fn void(detail: &str) -> BlockerRecord {
    because(Blocker::ApprovalVoid, detail)
}

/// Details quote texts of other people, so control and invisible characters are spelled out.
fn because(blocker: Blocker, detail: &str) -> BlockerRecord {
    blocker.because(visible_line(detail))
}
