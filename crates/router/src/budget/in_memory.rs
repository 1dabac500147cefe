//! Shared budgets for as long as a process lives: for tests, and where there is no store.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::{Amount, Later, LeaseError, Leases, Limits, Scope};

/// Leases that are gone with the process.
#[derive(Debug, Default)]
pub struct InMemory {
    holders: Mutex<BTreeMap<Scope, BTreeMap<String, Amount>>>,
}

impl InMemory {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<Scope, BTreeMap<String, Amount>>> {
        self.holders.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, scope: &Scope, holder: &str, change: impl FnOnce(Amount) -> Amount) {
        let mut holders = self.lock();
        let held = holders.entry(scope.clone()).or_default().entry(holder.to_owned()).or_default();
        *held = change(*held);
    }
}

fn sum(holders: &BTreeMap<String, Amount>) -> Amount {
    holders.values().fold(Amount::default(), |sum, held| sum.plus(*held))
}

impl Leases for InMemory {
    fn lease<'a>(
        &'a self,
        scope: &'a Scope,
        holder: &'a str,
        want: Amount,
        limits: Limits,
    ) -> Later<'a, Result<Amount, LeaseError>> {
        Box::pin(async move {
            let mut holders = self.lock();
            let holders = holders.entry(scope.clone()).or_default();
            let granted = want.min(limits.left(sum(holders)));
            let held = holders.entry(holder.to_owned()).or_default();
            *held = held.plus(granted);
            Ok(granted)
        })
    }

    fn settle<'a>(
        &'a self,
        scope: &'a Scope,
        holder: &'a str,
        leased: Amount,
        spent: Amount,
    ) -> Later<'a, Result<(), LeaseError>> {
        Box::pin(async move {
            self.change(scope, holder, |held| held.plus(spent).minus(leased));
            Ok(())
        })
    }

    fn reconcile<'a>(
        &'a self,
        scope: &'a Scope,
        holder: &'a str,
        spent: Amount,
    ) -> Later<'a, Result<(), LeaseError>> {
        Box::pin(async move {
            self.change(scope, holder, |_| spent);
            Ok(())
        })
    }

    fn taken<'a>(&'a self, scope: &'a Scope) -> Later<'a, Result<Amount, LeaseError>> {
        Box::pin(async move { Ok(self.lock().get(scope).map(sum).unwrap_or_default()) })
    }
}
