//! Asking for an approval, and a person's word on it. Both are written to the store; only the word is an approval.

use herma_core::Timestamp;
use herma_core::approval::{
    Answer, Approval, ApprovalId, ApprovalRequest, ApprovalState, ApprovalStore as _, Moved, Ruling,
};
use herma_core::blocker::BlockerRecord;
use herma_core::decision::Purpose;
use herma_core::store::StoreError;
use herma_core::trust::TrustEntry;
use herma_core::units::Span;
use herma_evidence::{TrustChain, signed};

use crate::approvers::Approver;
use crate::gates;
use crate::installation::Installation;
use crate::order::Order;
use crate::trust::TrustError;

/// Who asks.
pub enum Asker<'a> {
    /// The user that herma runs as: a name that nobody vouches for.
    User(String),
    /// An approver, who signs the request.
    Approver(&'a Approver),
}

/// An approval could not be asked for, granted or denied.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// The stage needs none.
    #[error("stage {0} needs no approval")]
    NotNeeded(herma_core::Stage),
    /// What would be approved is not there.
    #[error("there is nothing to approve yet: {}", .0.detail)]
    NotReady(BlockerRecord),
    /// Separation of duties asks for a signed request.
    #[error("separation_of_duties is on, so that a request is signed by who makes it: name an approver")]
    Unsigned,
    /// Who asked cannot grant.
    #[error("separation_of_duties is on: `{0}` asked for this approval and cannot rule on it")]
    SamePerson(String),
    /// The clock is behind that of the request.
    #[error(
        "approval {id} was asked for at {asked}, and the clock says {now}: nobody rules on what is still to come"
    )]
    Early {
        /// Which.
        id: ApprovalId,
        /// When it was asked for.
        asked: Timestamp,
        /// What the clock says.
        now: Timestamp,
    },
    /// It stands elsewhere than it must for this.
    #[error("approval {id} is {}, so that nobody can rule on it any more", state.as_str())]
    Final {
        /// Which.
        id: ApprovalId,
        /// Where it stands.
        state: ApprovalState,
    },
    /// There is no such approval.
    #[error("there is no approval {0}")]
    Unknown(ApprovalId),
    /// The record could not be signed.
    #[error("the record could not be signed: {0}")]
    Sign(#[from] serde_json::Error),
    /// The trust chain cannot be used.
    #[error(transparent)]
    Trust(#[from] TrustError),
    /// The store could not do it.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The system gives no random bytes.
    #[error("the system gives no random bytes: {0}")]
    Random(String),
}

/// Asks for an approval of exactly this order.
pub fn ask(
    installation: &Installation,
    order: &Order,
    reason: &str,
    asker: &Asker<'_>,
) -> Result<Approval, AskError> {
    let valid_for = installation.operator.approval_valid_for;
    ask_for(installation, order, reason, asker, &Terms { purpose: Purpose::Work, valid_for })
}

/// What an approval is asked for beyond the order itself.
pub(crate) struct Terms {
    pub(crate) purpose: Purpose,
    pub(crate) valid_for: Span,
}

/// The same, on terms that only herma itself makes.
pub(crate) fn ask_for(
    installation: &Installation,
    order: &Order,
    reason: &str,
    asker: &Asker<'_>,
    terms: &Terms,
) -> Result<Approval, AskError> {
    let stage = order.contract.terms.stage;
    if !stage.needs_approval() {
        return Err(AskError::NotNeeded(stage));
    }
    let binding = gates::binding(installation, order, terms.purpose).map_err(AskError::NotReady)?;
    let mut entropy = [0; 10];
    getrandom::fill(&mut entropy).map_err(|e| AskError::Random(e.to_string()))?;
    let now = installation.clock.now();
    let valid =
        jiff::SignedDuration::try_from(terms.valid_for.duration()).unwrap_or(jiff::SignedDuration::MAX);
    let request = ApprovalRequest {
        id: ApprovalId::new(now, entropy),
        binding,
        contract_text: order.contract_text.clone(),
        requested_by: match asker {
            Asker::User(name) => name.clone(),
            Asker::Approver(approver) => approver.name().to_string(),
        },
        reason: reason.to_owned(),
        requested_at: now,
        expires_at: now.saturating_add(valid).unwrap_or(now),
    };
    let signed_request = match asker {
        Asker::Approver(approver) => Some(signed::sign(request.clone(), *approver)?),
        Asker::User(_) if installation.operator.separation_of_duties => return Err(AskError::Unsigned),
        Asker::User(_) => None,
    };
    installation.store.request(&request, signed_request.as_ref())?;
    Ok(Approval { request, signed_request, state: ApprovalState::Requested, ruling: None, consumed_by: None })
}

/// Records a person's word on a request, signed with their key.
pub fn rule(
    installation: &Installation,
    approval: &Approval,
    answer: Answer,
    reason: &str,
    approver: &Approver,
) -> Result<Approval, AskError> {
    let (request, now) = (&approval.request, installation.clock.now());
    if installation.operator.separation_of_duties && request.requested_by == approver.name().as_str() {
        return Err(AskError::SamePerson(request.requested_by.clone()));
    }
    if now < request.requested_at {
        return Err(AskError::Early { id: request.id, asked: request.requested_at, now });
    }
    let mut appending = installation.trust_log.lock()?;
    // Under the lock of the chain, so that of two who rule at once the second finds the first one's answer.
    if let Some(state) = settled(installation, appending.chain(), request.id, now)? {
        return Err(AskError::Final { id: request.id, state });
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
    match installation.store.rule(&ruling, now)? {
        Moved::Done => {}
        Moved::Stood(state) => return Err(AskError::Final { id: request.id, state }),
        Moved::Unknown => return Err(AskError::Unknown(request.id)),
    }
    let state = match answer {
        Answer::Granted => ApprovalState::Granted,
        Answer::Denied => ApprovalState::Denied,
    };
    Ok(Approval { state, ruling: Some(ruling), ..approval.clone() })
}

/// Where an approval stands that nobody can rule on any more; none where somebody can. What the chain calls denied or
/// consumed stays so in a store that was restored.
fn settled(
    installation: &Installation,
    chain: &TrustChain,
    id: ApprovalId,
    now: Timestamp,
) -> Result<Option<ApprovalState>, AskError> {
    if chain.consumed_by(id).is_some() {
        return Ok(Some(ApprovalState::Consumed));
    }
    if matches!(chain.ruling(id), Some((Answer::Denied, _))) {
        return Ok(Some(ApprovalState::Denied));
    }
    let there = installation.store.find_approval(&id.to_string())?.pop().ok_or(AskError::Unknown(id))?;
    Ok(Some(there.state_at(now)).filter(|state| *state != ApprovalState::Requested))
}
