//! The egress plan of one run, or the blocker that keeps it from starting.

use herma_core::blocker::{Blocker, BlockerRecord};
use herma_core::egress::EgressMode;
use herma_core::{Contract, Stage};
use herma_destination::DestinationCapabilities;
use herma_egress::rules::Allowlist;
use herma_rules::EgressRules;
use herma_trust::{EffectiveEgress, EgressError};

use crate::installation::Installation;
use crate::order::Order;

/// The plan of a run's proxy.
#[derive(Clone, Debug)]
pub(crate) struct EgressPlan {
    pub(crate) allowlist: Allowlist,
    pub(crate) mode: EgressMode,
    /// The installation's part of it, for the digest that approvals are bound to.
    pub(crate) rules: EgressRules,
}

impl Installation {
    /// The hosts that a run of this contract could reach now; without one, those of every run.
    pub fn egress_of(&self, contract: Option<&Contract>) -> Result<EffectiveEgress, EgressError> {
        let signed_by = self.operator.egress_signed_by.as_ref();
        EffectiveEgress::of(contract, &self.egress(), &self.approvers(), signed_by, self.clock.now())
    }
}

/// The plan for an order, or why it cannot start.
pub(crate) fn look(installation: &Installation, order: &Order) -> Result<EgressPlan, BlockerRecord> {
    let unready = |what: String, next: &str| {
        Err(BlockerRecord { next_step: next.to_owned(), ..Blocker::DestinationUnready.because(what) })
    };
    let terms = &order.contract.terms;
    let learns = order.egress == EgressMode::Learn;
    if !DestinationCapabilities::of(order.destination()).has_network_namespace() {
        if !terms.egress.is_empty() {
            return unready(
                "the contract names egress hosts, and `host` has no confinement that would restrict the engine to them"
                    .to_owned(),
                "Run it in `sandbox`.",
            );
        }
        if learns {
            return unready(
                "there is nothing to learn on `host`: it has no confinement, and so no proxy".to_owned(),
                "Run it in `sandbox`.",
            );
        }
    }
    if learns && terms.stage >= Stage::CopiedRepo {
        return unready(
            format!(
                "`--egress learn` lets the engine reach hosts that nobody has listed, and at stage {} that could carry \
                 source out",
                terms.stage
            ),
            "Learn on a fixture at stage 2, look at what it learned with `herma egress learned`, and adopt it.",
        );
    }
    let of_run = match installation.egress_of(Some(&order.contract)) {
        Ok(of_run) => of_run,
        Err(bad) => {
            return unready(bad.to_string(), "Fix it; `herma egress show` shows whether it can be read.");
        }
    };
    if let Some(problem) = &of_run.list.problem {
        return unready(problem.clone(), "`herma egress show` shows which list counts until it is fixed.");
    }
    let allowlist = of_run.allowlist(installation.clock.now());
    Ok(EgressPlan { allowlist, mode: order.egress, rules: of_run.rules() })
}
