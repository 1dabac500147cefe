//! The routers of runs that lie one in the other: a child's calls count against its parent's budget, so that before one of
//! them refuses a call, what has ended at any of them is settled.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use super::scribe;
use super::shared::Shared;
use crate::budget::{Above, Amount};

/// All routers that share budgets. Cheap to clone; every clone is the same.
#[derive(Clone, Debug, Default)]
pub(super) struct Kin(Arc<Mutex<Vec<Weak<Shared>>>>);

impl Kin {
    pub(super) fn join(&self, router: &Arc<Shared>) {
        let mut routers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        routers.retain(|router| router.strong_count() > 0);
        routers.push(Arc::downgrade(router));
    }

    /// Settles the calls that have ended.
    pub(super) fn settle_ended(&self) {
        let routers = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for router in routers.iter().filter_map(Weak::upgrade) {
            scribe::write(&router);
        }
    }
}

/// A run that may have others below it, whose calls count against its budget as well. Cheap to clone; every clone is the
/// same.
#[derive(Clone, Debug)]
pub struct RunAbove {
    pub(super) budget: Above,
    pub(super) kin: Kin,
}

impl RunAbove {
    /// What all runs below were charged so far. Of one that has ended it is everything.
    #[must_use]
    pub fn charged(&self) -> Amount {
        self.budget.charged()
    }
}
