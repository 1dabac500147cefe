//! Budgets of parent runs: a child's calls count against all its parents too.
//!
//! Every run's router has a ledger of its own. A call is reserved bottom-up, without waiting, and rolled back if one ledger
//! refuses. So a run and all its child runs together never have more reserved or spent than its limits.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::ledger::{Exhausted, NotReserved, Reservation, Reserved};
use super::{Amount, Ask, Budgets, Lack, Scope};

/// The budget of a run, for the calls of its child runs. Cheap to clone; all clones share it.
#[derive(Clone, Debug)]
pub struct ParentLedger {
    budgets: Budgets,
    scope: Scope,
    /// The charges of child runs so far.
    charged: Arc<Mutex<Amount>>,
}

impl ParentLedger {
    /// The budget of this scope, which has to be a run's: this process alone holds it, so that a reservation never waits. Any
    /// other scope refuses every call.
    #[must_use]
    pub fn new(budgets: Budgets, scope: Scope) -> Self {
        Self { budgets, scope, charged: Arc::default() }
    }

    /// The charges of child runs so far, without the reservations of in-flight calls.
    #[must_use]
    pub fn charged(&self) -> Amount {
        *self.lock()
    }

    /// Reserves the maximum cost of a child run's call, here and in every parent budget, or nowhere.
    pub(super) fn reserve(&self, ask: Ask) -> Result<Reserved, Exhausted> {
        let reserved = self.budgets.ledger().reserve(std::slice::from_ref(&self.scope), &ask, &[]);
        let reserved = reserved.map_err(|why| match why {
            NotReserved::Exhausted(exhausted) => exhausted,
            NotReserved::Short(_) => Exhausted { scope: self.scope.clone(), what: Lack::Budget },
        })?;
        self.budgets.with_above(reserved, ask)
    }

    /// The call cost this much.
    pub(super) fn settle(&self, reservation: Reservation, cost: Amount) {
        self.budgets.settle(reservation, cost);
        self.count(cost);
    }

    /// The cost of the call is unknown.
    pub(super) fn abandon(&self, reservation: Reservation) {
        let most = reservation.most();
        self.budgets.abandon(reservation);
        self.count(most);
    }

    fn count(&self, cost: Amount) {
        let mut charged = self.lock();
        *charged = charged.plus(cost);
    }

    fn lock(&self) -> MutexGuard<'_, Amount> {
        self.charged.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
