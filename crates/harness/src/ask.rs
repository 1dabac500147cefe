//! Requests an approval of exactly one order, and records an approver's ruling on it.

use herma_core::approval::{Answer, Approval};
use herma_core::decision::Purpose;
use herma_core::units::Span;
use herma_trust::approvals::{self, Asker, RequestTerms, RulingContext};
use herma_trust::{ApprovalError, Approver};

use crate::gates;
use crate::installation::Installation;
use crate::order::Order;

/// Requests an approval of exactly this order.
pub fn ask(
    installation: &Installation,
    order: &Order,
    reason: &str,
    asker: &Asker<'_>,
) -> Result<Approval, ApprovalError> {
    let valid_for = installation.operator.approval_valid_for;
    ask_for(installation, order, reason, asker, &ApprovalTerms { purpose: Purpose::Work, valid_for })
}

/// The terms of a request beyond the order itself.
pub struct ApprovalTerms {
    /// Work or proof.
    pub purpose: Purpose,
    /// How long it can be granted and used.
    pub valid_for: Span,
}

/// Requests an approval on other terms than the operator's: a proof has its own.
pub fn ask_for(
    installation: &Installation,
    order: &Order,
    reason: &str,
    asker: &Asker<'_>,
    terms: &ApprovalTerms,
) -> Result<Approval, ApprovalError> {
    let stage = order.contract.terms.stage;
    if !stage.needs_approval() {
        return Err(ApprovalError::NotNeeded(stage));
    }
    let binding = gates::binding(installation, order, terms.purpose).map_err(ApprovalError::NotReady)?;
    let request = RequestTerms {
        contract_text: &order.contract_text,
        reason,
        asker,
        valid_for: terms.valid_for,
        separation_of_duties: installation.operator.separation_of_duties,
    };
    approvals::request(&installation.store, binding, &request, installation.clock.now())
}

/// Records an approver's ruling on a request, signed with their key.
pub fn rule(
    installation: &Installation,
    approval: &Approval,
    answer: Answer,
    reason: &str,
    approver: &Approver,
) -> Result<Approval, ApprovalError> {
    let context = RulingContext {
        trust_log: &installation.trust_log,
        store: &installation.store,
        separation_of_duties: installation.operator.separation_of_duties,
        now: installation.clock.now(),
    };
    approvals::rule(&context, approval, answer, reason, approver)
}
