//! An approver's ruling on a request: signed, appended to the trust chain, then written to the store.

use herma_core::Timestamp;
use herma_core::approval::{Answer, Approval, ApprovalId, ApprovalState, Moved, Ruling};
use herma_core::trust::TrustEntry;
use herma_evidence::{TrustChain, signed};
use herma_store::BlockingStore;

use super::error::ApprovalError;
use crate::approvers::Approver;
use crate::chain::TrustLog;

/// The records and settings that a ruling depends on.
pub struct RulingContext<'a> {
    /// The trust chain that the ruling is appended to.
    pub trust_log: &'a TrustLog,
    /// The store of approvals.
    pub store: &'a BlockingStore,
    /// Whether the requester may not rule on its own request.
    pub separation_of_duties: bool,
    /// The time now.
    pub now: Timestamp,
}

/// Records an approver's ruling on a request.
pub fn rule(
    context: &RulingContext<'_>,
    approval: &Approval,
    answer: Answer,
    reason: &str,
    approver: &Approver,
) -> Result<Approval, ApprovalError> {
    let (request, now) = (&approval.request, context.now);
    if context.separation_of_duties && request.requested_by == approver.name().as_str() {
        return Err(ApprovalError::SamePerson(request.requested_by.clone()));
    }
    if now < request.requested_at {
        return Err(ApprovalError::Early { id: request.id, asked: request.requested_at, now });
    }
    let mut appending = context.trust_log.lock()?;
    // Under the lock of the chain: of two concurrent rulings the second sees the first.
    if let Some(state) = settled(context.store, appending.chain(), request.id, now)? {
        return Err(ApprovalError::Final { id: request.id, state });
    }
    let ruling = Ruling {
        id: request.id,
        answer,
        request: request.clone(),
        approver: approver.name().clone(),
        reason: reason.to_owned(),
        at: now,
        trust_head: Some(appending.head()),
    };
    let ruling = signed::sign(ruling, approver)?;
    let record = signed::digest(&ruling.record)?;
    appending.append(TrustEntry::ApprovalRuled { approval: request.id, answer, record }, approver, now)?;
    match context.store.call(|store| store.rule_on_approval(&ruling, now))? {
        Moved::Done => {}
        Moved::Stood(state) => return Err(ApprovalError::Final { id: request.id, state }),
        Moved::Unknown => return Err(ApprovalError::Unknown(request.id)),
    }
    let state = match answer {
        Answer::Granted => ApprovalState::Granted,
        Answer::Denied => ApprovalState::Denied,
    };
    Ok(Approval { state, ruling: Some(ruling), ..approval.clone() })
}

/// The state of an approval that is not open for a ruling any more; none while it is. An approval that the chain calls
/// denied or consumed stays so in a store that was restored.
fn settled(
    store: &BlockingStore,
    chain: &TrustChain,
    id: ApprovalId,
    now: Timestamp,
) -> Result<Option<ApprovalState>, ApprovalError> {
    if chain.consumed_by(id).is_some() {
        return Ok(Some(ApprovalState::Consumed));
    }
    if matches!(chain.ruling(id), Some((Answer::Denied, _))) {
        return Ok(Some(ApprovalState::Denied));
    }
    let name = id.to_string();
    let stored = store.call(|store| store.find_approvals(&name))?.pop().ok_or(ApprovalError::Unknown(id))?;
    Ok(Some(stored.state_at(now)).filter(|state| *state != ApprovalState::Requested))
}
