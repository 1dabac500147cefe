//! A run as part of a proof. It may run at a stage that is not proven yet.

use herma_core::decision::Purpose;
use herma_core::units::Span;

use crate::error::OrderError;
use crate::installation::Installation;
use crate::order::{Occasion, Order};
use crate::pipeline::run_on;
use crate::progress::Progress;
use crate::submission::Finished;

/// Runs an order for a proof. Only the ladder calls it: no flag and no contract leads here. `outcome_within` replaces
/// the operator's time limit for the outcome.
pub fn run_proof(
    installation: &Installation,
    order: &Order,
    outcome_within: Option<Span>,
    watch: &dyn Progress,
) -> Result<Finished, OrderError> {
    let occasion = Occasion { purpose: Purpose::Proof, outcome_within, child_of: None };
    run_on(installation, order, occasion, watch)
}
