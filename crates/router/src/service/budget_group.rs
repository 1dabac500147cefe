//! The routers of a run and its child runs. A child's calls count against its parent's budget, so every ended call of the
//! group is settled before one of them refuses a call.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use super::audit_writer;
use super::shared::Shared;
use crate::budget::{Amount, ParentLedger};

/// The routers that share budgets. Clones share one list.
#[derive(Clone, Debug, Default)]
pub(super) struct BudgetGroup(Arc<Mutex<Vec<Weak<Shared>>>>);

impl BudgetGroup {
    pub(super) fn join(&self, router: &Arc<Shared>) {
        let mut routers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        routers.retain(|router| router.strong_count() > 0);
        routers.push(Arc::downgrade(router));
    }

    /// Settles the calls that have ended.
    pub(super) fn settle_ended(&self) {
        let routers = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for router in routers.iter().filter_map(Weak::upgrade) {
            audit_writer::write(&router);
        }
    }
}

/// The budget of a run, against which the calls of its child runs count too. Clones share one budget.
#[derive(Clone, Debug)]
pub struct ParentBudget {
    pub(super) budget: ParentLedger,
    pub(super) budget_group: BudgetGroup,
}

impl ParentBudget {
    /// The charges of all child runs so far.
    #[must_use]
    pub fn charged(&self) -> Amount {
        self.budget.charged()
    }
}
