//! The budget of a run above: what a child's calls cost counts against the run that asked for it, and so on to the top.
//!
//! Every run's router has a ledger of its own. A call is set aside in the ledger of its run first and then in those above it,
//! one after the other and with nothing to wait for in between; where one of them says no, what was set aside below is free
//! again. So at no moment have a run and all below it more set aside or spent than its limits.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::ledger::{Exhausted, NotReserved, Reservation, Reserved};
use super::{Amount, Ask, Budgets, Lack, Scope};

/// The budget of a run, for the calls of those below it. Cheap to clone; every clone is the same.
#[derive(Clone, Debug)]
pub struct Above {
    budgets: Budgets,
    scope: Scope,
    /// What those below were charged so far.
    charged: Arc<Mutex<Amount>>,
}

impl Above {
    /// The budget of this scope, which has to be a run's: it is held by this process alone, so that nothing has to be waited
    /// for. Any other refuses every call.
    #[must_use]
    pub fn new(budgets: Budgets, scope: Scope) -> Self {
        Self { budgets, scope, charged: Arc::default() }
    }

    /// What those below were charged so far, without what is set aside for calls under way.
    #[must_use]
    pub fn charged(&self) -> Amount {
        *self.lock()
    }

    /// Sets aside the most that a call of one below can cost, here and in every budget above this one, or nowhere.
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

    /// Nobody knows what the call cost.
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
