//! The budgets of a router, shared by all its calls.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::ledger::{BudgetState, Exhausted, Ledger, NotReserved, Reservation, Reserved, Short, Unsettled};
use super::shared::{Over, Wanted};
use super::{Amount, Ask, InMemory, Lack, LeaseError, Leases, Limits, ParentLedger, Scope};

/// All budgets of a router. Cheap to clone; every clone is the same.
#[derive(Clone)]
pub struct Budgets {
    inner: Arc<Inner>,
}

struct Inner {
    ledger: Mutex<Ledger>,
    leases: Arc<dyn Leases>,
    holder: Arc<str>,
    above: Option<ParentLedger>,
}

impl fmt::Debug for Budgets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Budgets").field("holder", &self.inner.holder).finish_non_exhaustive()
    }
}

impl Default for Budgets {
    /// Budgets that no other process knows.
    fn default() -> Self {
        Self::new(Arc::new(InMemory::default()), "this process")
    }
}

impl Budgets {
    /// Budgets whose shared ones are leased by `holder`. No two live processes may have the same holder id; a process that
    /// resumes the audits of a dead one reuses its id.
    #[must_use]
    pub fn new(leases: Arc<dyn Leases>, holder: &str) -> Self {
        Self::below(None, leases, holder)
    }

    /// The same, with a parent budget: every call counts against it and its parents too.
    #[must_use]
    pub fn below(above: Option<ParentLedger>, leases: Arc<dyn Leases>, holder: &str) -> Self {
        Self { inner: Arc::new(Inner { ledger: Mutex::default(), leases, holder: holder.into(), above }) }
    }

    /// Opens a budget, with what was spent of it before. One that is open learns its new limits and keeps the rest. That
    /// of a run is this process's own; those of engines and days are shared, and what this process spends of them is
    /// leased first.
    pub fn open(&self, scope: Scope, limits: Limits, spent: Amount) {
        self.ledger().open(scope, limits, spent);
    }

    /// Opens a shared budget of which an earlier process of the same holder may have leased more than it spent. The spending
    /// in the audits stays charged; the rest is returned. An open budget is left as it is.
    pub async fn recover(&self, scope: Scope, limits: Limits, spent: Amount) -> Result<(), LeaseError> {
        if !self.is_open(&scope) {
            self.inner.leases.reconcile(&scope, &self.inner.holder, spent).await?;
            self.open(scope, limits, spent);
        }
        Ok(())
    }

    /// Whether a budget is open.
    #[must_use]
    pub fn is_open(&self, scope: &Scope) -> bool {
        self.ledger().is_open(scope)
    }

    /// Sets aside the most that a call can cost, in every scope or in none, with its output lowered to what fits. Most
    /// calls wait for nothing; one in many waits until more of a shared budget is leased.
    pub async fn reserve(&self, scopes: &[Scope], ask: Ask) -> Result<Reserved, Exhausted> {
        let mut empty = Vec::new();
        loop {
            let tried = self.ledger().reserve(scopes, &ask, &empty);
            match tried {
                Ok(reserved) => return self.with_above(reserved, ask),
                Err(NotReserved::Exhausted(exhausted)) => return Err(exhausted),
                Err(NotReserved::Short(short)) => {
                    // Other calls may have used the new lease meanwhile: lease again. If the store has no more, the call
                    // gets the rest.
                    if self.extend(short).await? == Extended::Empty {
                        empty.push(short);
                    }
                }
            }
        }
    }

    /// Reserves the same in the parent budgets, or nothing anywhere. It never waits: a client that disconnects during a wait
    /// would leave a reservation in the parents.
    pub(super) fn with_above(&self, reserved: Reserved, ask: Ask) -> Result<Reserved, Exhausted> {
        let Some(above) = &self.inner.above else { return Ok(reserved) };
        let Reserved { mut reservation, output } = reserved;
        match above.reserve(Ask { output, ..ask }) {
            Ok(fits) => {
                if fits.output < output {
                    self.ledger().lower(&mut reservation, ask.most(fits.output));
                }
                reservation.above = Some(Box::new(fits.reservation));
                Ok(Reserved { reservation, output: fits.output })
            }
            Err(exhausted) => {
                self.release(reservation);
                Err(exhausted)
            }
        }
    }

    /// The call cost this much. More than the most is charged too.
    pub fn settle(&self, mut reservation: Reservation, cost: Amount) {
        let above = reservation.above.take();
        self.ledger().settle(reservation, cost);
        if let Some((above, reservation)) = self.inner.above.as_ref().zip(above) {
            above.settle(*reservation, cost);
        }
    }

    /// The call was never made.
    pub fn release(&self, reservation: Reservation) {
        self.settle(reservation, Amount::default());
    }

    /// The cost of the call is unknown: it is charged at the most, and counted.
    pub fn abandon(&self, mut reservation: Reservation) {
        let above = reservation.above.take();
        self.ledger().abandon(reservation);
        if let Some((above, reservation)) = self.inner.above.as_ref().zip(above) {
            above.abandon(*reservation);
        }
    }

    /// Takes no more reservations. The budget is removed when the last one is settled; a shared one at the next
    /// [`Budgets::tidy`].
    pub fn retire(&self, scope: &Scope) {
        self.ledger().retire(scope);
    }

    /// The spending of this process, with its reservations.
    #[must_use]
    pub fn taken(&self, scope: &Scope) -> Amount {
        self.ledger().taken(scope)
    }

    /// The rest of a budget, of all that it limits; none if it is not open. The spending of other processes is not
    /// subtracted.
    #[must_use]
    pub fn left(&self, scope: &Scope) -> Option<Limits> {
        self.ledger().left(scope)
    }

    /// The calls of unknown cost.
    #[must_use]
    pub fn unsettled(&self) -> Unsettled {
        self.ledger().unsettled()
    }

    /// Every budget as it stands, in order.
    #[must_use]
    pub fn snapshot(&self) -> Vec<BudgetState> {
        self.ledger().snapshot()
    }

    /// Returns idle leases, and settles shared budgets that are over. To be called now and then, so that other processes can
    /// spend what this one does not.
    pub async fn tidy(&self) -> Result<(), LeaseError> {
        let shared = self.ledger().shared();
        for account in shared {
            let Some(changing) = self.ledger().changing(account) else { continue };
            let _changing = changing.lock().await;
            let over = self.ledger().take_over(account);
            let idle = self.ledger().take_idle(account);
            if let Some(over) = over.or(idle) {
                self.settle_with_others(over).await?;
            }
        }
        Ok(())
    }

    /// Ends all shared budgets: returns unspent leases, and charges open reservations at the most. Continues after an error;
    /// returns the first.
    pub async fn close(&self) -> Result<(), LeaseError> {
        let mut first = Ok(());
        let shared = self.ledger().shared();
        for account in shared {
            let Some(changing) = self.ledger().changing(account) else { continue };
            let _changing = changing.lock().await;
            let over = self.ledger().end(account);
            if let Some(over) = over {
                first = first.and(self.settle_with_others(over).await);
            }
        }
        first
    }

    /// A retired budget is out of the ledger: if the store does not answer, it stays charged, and is never returned twice.
    async fn settle_with_others(&self, over: Over) -> Result<(), LeaseError> {
        let Over { scope, leased, spent } = over;
        self.inner.leases.settle(&scope, &self.inner.holder, leased, spent).await
    }

    pub(super) fn ledger(&self) -> MutexGuard<'_, Ledger> {
        // Every change is whole before anything in it can panic.
        self.inner.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Leases what a call needs, or waits until another call has.
    async fn extend(&self, short: Short) -> Result<Extended, Exhausted> {
        let Some(changing) = self.ledger().changing(short.account) else { return Ok(Extended::Enough) };
        let changing = changing.lock_owned().await;
        let Some(wanted) = self.ledger().wanted(&short) else { return Ok(Extended::Enough) };
        let exhausted = Exhausted { scope: wanted.scope.clone(), what: Lack::Store };
        let budgets = self.clone();
        // A task of its own: a client that disconnects meanwhile must not leave an unrecorded lease.
        let leased = tokio::spawn(async move {
            let _changing = changing;
            let Inner { leases, holder, .. } = &*budgets.inner;
            let Wanted { scope, want, limits } = wanted;
            let granted = leases.lease(&scope, holder, want, limits).await?;
            budgets.ledger().leased(short.account, granted);
            Ok::<_, LeaseError>(if granted == want { Extended::Enough } else { Extended::Empty })
        });
        match leased.await {
            Ok(Ok(extended)) => Ok(extended),
            Ok(Err(_)) | Err(_) => Err(exhausted),
        }
    }
}

/// The result of an extension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Extended {
    /// There is enough, or was.
    Enough,
    /// The store has no more.
    Empty,
}
