//! The approval: there is one, of exactly this run.

use herma_core::Digest;
use herma_core::approval::{ApprovalId, Binding};
use herma_core::blocker::{Blocker, BlockerRecord};
use herma_core::gate::Finding;
use herma_core::report::ApprovalStatus;
use herma_rules::egress_digest;
use herma_trust::approvals::{self, UsableApproval};

use super::{Case, Judged};
use crate::egress::EgressPlan;
use crate::installation::Installation;
use crate::target::FoundTarget;

/// The approval that was found.
#[derive(Clone, Debug)]
pub(crate) enum ApprovalSeen {
    /// The stage needs none.
    NotRequired(String),
    /// There is one, and it can be used.
    Present(Box<UsableApproval>),
    /// No approval can be used.
    Absent(BlockerRecord),
}

impl ApprovalSeen {
    /// The finding of the gate.
    pub(super) fn judged(&self) -> Judged {
        match self {
            Self::NotRequired(why) => Ok(Finding::NotApplicable(why.clone())),
            Self::Present(_) => Ok(Finding::Passed),
            Self::Absent(why) => Err(why.clone()),
        }
    }

    /// Its status in the report.
    pub(crate) fn status(&self) -> ApprovalStatus {
        match self {
            Self::NotRequired(_) => ApprovalStatus::NotRequired,
            Self::Present(_) => ApprovalStatus::Granted,
            Self::Absent(why) => match why.blocker {
                Blocker::ApprovalDenied => ApprovalStatus::Denied,
                Blocker::ApprovalExpired => ApprovalStatus::Expired,
                Blocker::ApprovalAlreadyConsumed => ApprovalStatus::AlreadyConsumed,
                _ => ApprovalStatus::Void,
            },
        }
    }

    /// The approval that can be used.
    pub(crate) fn id(&self) -> Option<ApprovalId> {
        match self {
            Self::Present(present) => Some(present.approval.request.id),
            Self::NotRequired(_) | Self::Absent(_) => None,
        }
    }
}

/// The binding of an approval for this run.
pub(super) fn bind(
    case: Case<'_>,
    engine_digest: Digest,
    target: &FoundTarget,
    egress: &EgressPlan,
    governance_digest: Digest,
) -> Binding {
    approvals::bind(&approvals::BindingInput {
        contract: &case.order.contract,
        contract_digest: case.contract_digest,
        engine: &case.order.engine,
        engine_digest,
        target: target.name(),
        target_admission: target.admission_digest(),
        base: target.base(),
        purpose: case.occasion.purpose,
        destination: case.order.destination(),
        image: case.image(),
        governance_digest,
        egress_digest: egress_digest(&case.order.contract.terms, &egress.rules),
    })
}

pub(super) fn look(
    case: Case<'_>,
    engine_digest: Option<Digest>,
    target: Option<&FoundTarget>,
    egress: Option<&EgressPlan>,
) -> ApprovalSeen {
    let stage = case.order.contract.terms.stage;
    if !stage.needs_approval() {
        return ApprovalSeen::NotRequired(format!("stage {stage} needs no approval"));
    }
    let (Some(engine_digest), Some(target), Some(egress)) = (engine_digest, target, egress) else {
        return ApprovalSeen::Absent(Blocker::ApprovalVoid.because(
            "no approval can be of an engine, a target or a destination that is not there; the other gates say which is \
             missing",
        ));
    };
    let installation = case.installation;
    let governance = match installation.policies() {
        Ok(policies) => policies.digest(),
        Err(why) => return ApprovalSeen::Absent(Blocker::ApprovalVoid.because(why.to_string())),
    };
    let binding = bind(case, engine_digest, target, egress, governance);
    let found = approvals::find_usable(
        &installation.store,
        &installation.approvers(),
        &binding,
        installation.clock.now(),
        installation.operator.separation_of_duties,
    );
    match found {
        Ok(present) => match used_by(installation, present.approval.request.id) {
            Some(by) => ApprovalSeen::Absent(used(present.approval.request.id, &by)),
            None => ApprovalSeen::Present(Box::new(present)),
        },
        Err(why) => ApprovalSeen::Absent(why),
    }
}

/// The run that used an approval, by the mark of that run or by the trust chain. Neither needs the other.
fn used_by(installation: &Installation, id: ApprovalId) -> Option<String> {
    let chained = || installation.trust_log.read().ok()?.consumed_by(id).map(|run| format!("run {run}"));
    installation.home.is_used(id).or_else(chained)
}

/// The store says that an approval can be used, and a run has used it: the store was changed behind herma's back.
pub(crate) fn used(id: ApprovalId, by: &str) -> BlockerRecord {
    Blocker::ApprovalAlreadyConsumed.because(format!("approval {} was used by {by}", id.short()))
}
