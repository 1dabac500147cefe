//! A request for an approval, written to the store. It is not an approval.

use herma_core::Timestamp;
use herma_core::approval::{Approval, ApprovalId, ApprovalRequest, ApprovalState, Binding};
use herma_core::units::Span;
use herma_evidence::signed;
use herma_store::BlockingStore;
use jiff::SignedDuration;

use super::error::ApprovalError;
use crate::approvers::Approver;

/// The requester of an approval.
pub enum Asker<'a> {
    /// The user that herma runs as: a name without a signature.
    User(String),
    /// An approver, who signs the request.
    Approver(&'a Approver),
}

/// The terms of a request.
pub struct RequestTerms<'a> {
    /// The text of the contract.
    pub contract_text: &'a str,
    /// The reason, for the approver.
    pub reason: &'a str,
    /// The requester.
    pub asker: &'a Asker<'a>,
    /// How long it can be granted and used.
    pub valid_for: Span,
    /// Whether separation of duties is on, so that the request must be signed.
    pub separation_of_duties: bool,
}

/// Requests an approval of exactly this binding.
pub fn request(
    store: &BlockingStore,
    binding: Binding,
    terms: &RequestTerms<'_>,
    now: Timestamp,
) -> Result<Approval, ApprovalError> {
    let mut entropy = [0; 10];
    getrandom::fill(&mut entropy).map_err(|e| ApprovalError::Random(e.to_string()))?;
    let valid = SignedDuration::try_from(terms.valid_for.duration()).unwrap_or(SignedDuration::MAX);
    let request = ApprovalRequest {
        id: ApprovalId::new(now, entropy),
        binding,
        contract_text: terms.contract_text.to_owned(),
        requested_by: match terms.asker {
            Asker::User(name) => name.clone(),
            Asker::Approver(approver) => approver.name().to_string(),
        },
        reason: terms.reason.to_owned(),
        requested_at: now,
        expires_at: now.saturating_add(valid).unwrap_or(now),
    };
    let signed_request = match terms.asker {
        Asker::Approver(approver) => Some(signed::sign(request.clone(), *approver)?),
        Asker::User(_) if terms.separation_of_duties => return Err(ApprovalError::Unsigned),
        Asker::User(_) => None,
    };
    store.call(|store| store.request_approval(&request, signed_request.as_ref()))?;
    Ok(Approval { request, signed_request, state: ApprovalState::Requested, ruling: None, consumed_by: None })
}
