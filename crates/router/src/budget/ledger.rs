//! The ledger: spending, reservations, and calls of unknown cost.

use std::collections::BTreeMap;

use serde::Serialize;
use smallvec::SmallVec;

use super::ask::{Ask, Lack};
use super::shared::Lease;
use super::{Amount, Limits, Scope};

/// The reservation of a call. It ends in exactly one of [`Ledger::settle`], [`Ledger::release`] and [`Ledger::abandon`];
/// dropping it leaves its maximum charged, which is never too little.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "what is set aside stays charged until it is settled"]
pub struct Reservation {
    accounts: SmallVec<[u64; 3]>,
    most: Amount,
    /// The reservation of the same call in the parent budget, which another ledger holds.
    pub(super) above: Option<Box<Reservation>>,
}

impl Reservation {
    /// The most that the call can cost.
    #[must_use]
    pub fn most(&self) -> Amount {
        self.most
    }
}

/// The result of a reservation.
#[derive(Debug, PartialEq, Eq)]
pub struct Reserved {
    /// The reservation.
    pub reservation: Reservation,
    /// The tokens of output that each answer may have: what was wanted, or what fits.
    pub output: u64,
}

/// The calls of unknown cost. The audit lists them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unsettled {
    /// How many.
    pub calls: u64,
    /// Their charge.
    pub charged: Amount,
}

/// A budget does not allow the call.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the budget of {scope} does not allow it: {what}")]
pub struct Exhausted {
    /// The scope of the budget.
    pub scope: Scope,
    /// The reason.
    pub what: Lack,
}

/// Why there is no reservation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotReserved {
    /// A budget does not allow the call.
    Exhausted(Exhausted),
    /// The lease of a shared budget is not enough; there may be more to lease.
    Short(Short),
}

/// A shared budget of which more has to be leased.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Short {
    pub(super) account: u64,
    pub(super) need: Amount,
}

/// One budget as it stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct BudgetState {
    /// The scope.
    pub scope: Scope,
    /// The limits.
    pub limits: Limits,
    /// The spending.
    pub spent: Amount,
    /// The reservations of in-flight calls.
    pub reserved: Amount,
    /// The lease, if it is shared with other processes; spent and reserved are a part of it.
    pub leased: Option<Amount>,
}

/// One budget.
#[derive(Debug)]
pub(super) struct Account {
    pub(super) scope: Scope,
    pub(super) limits: Limits,
    pub(super) spent: Amount,
    pub(super) reserved: Amount,
    pub(super) lease: Option<Lease>,
    /// Whether it takes no more reservations. It is removed after the last one.
    pub(super) is_retired: bool,
}

impl Account {
    pub(super) fn taken(&self) -> Amount {
        self.spent.plus(self.reserved)
    }
}

/// All budgets of a router. It is one value behind one lock: a reservation is taken from every scope or from none.
#[derive(Debug, Default)]
pub struct Ledger {
    pub(super) accounts: BTreeMap<u64, Account>,
    names: BTreeMap<Scope, u64>,
    unsettled: Unsettled,
    next: u64,
}

impl Ledger {
    /// Opens a budget with its earlier spending. An open budget keeps its spending and reservations and gets the new limits.
    /// The budget of a run belongs to this process; those of engines and days are shared with other processes, and have to
    /// be leased before they are spent.
    pub fn open(&mut self, scope: Scope, limits: Limits, spent: Amount) {
        if let Some(account) = self.names.get(&scope).and_then(|id| self.accounts.get_mut(id)) {
            (account.limits, account.is_retired) = (limits, false);
            return;
        }
        let lease = match scope {
            Scope::Run(_) => None,
            Scope::Engine(_) | Scope::Day(_) => Some(Lease::new(spent)),
        };
        let reserved = Amount::default();
        self.next += 1;
        self.names.insert(scope.clone(), self.next);
        self.accounts.insert(self.next, Account { scope, limits, spent, reserved, lease, is_retired: false });
    }

    /// Whether a budget is open.
    #[must_use]
    pub fn is_open(&self, scope: &Scope) -> bool {
        self.account(scope).is_some_and(|account| !account.is_retired)
    }

    /// Reserves the maximum cost of a call, in every scope or in none. Its output is lowered until it fits into all of them,
    /// in tokens and in money, but not below its minimum. A scope without a budget is refused. `empty` are the shared
    /// budgets of which no more can be leased.
    pub fn reserve(&mut self, scopes: &[Scope], ask: &Ask, empty: &[Short]) -> Result<Reserved, NotReserved> {
        let exhausted =
            |scope: &Scope, what| NotReserved::Exhausted(Exhausted { scope: scope.clone(), what });
        let mut accounts = SmallVec::with_capacity(scopes.len());
        let mut output = ask.output;
        for scope in scopes {
            let id = *self.names.get(scope).ok_or_else(|| exhausted(scope, Lack::Budget))?;
            // A budget that is named twice is asked once: else both would fit, and together not.
            if accounts.contains(&id) {
                continue;
            }
            let account = self.accounts.get(&id).filter(|account| !account.is_retired);
            let account = account.ok_or_else(|| exhausted(scope, Lack::Budget))?;
            let left = account.limits.left(account.taken());
            output = ask.fit(output, &account.limits, left).map_err(|what| exhausted(scope, what))?;
            if empty.iter().any(|short| short.account == id) {
                let left = left.min(account.leased_left());
                output = ask.fit(output, &account.limits, left).map_err(|what| exhausted(scope, what))?;
            }
            accounts.push(id);
        }
        let most = ask.most(output);
        for id in &accounts {
            let Some(account) = self.accounts.get(id) else { continue };
            if account.leased_left().min(most) != most {
                return Err(NotReserved::Short(Short { account: *id, need: most }));
            }
        }
        self.each(&accounts, |account| account.reserved = account.reserved.plus(most));
        Ok(Reserved { reservation: Reservation { accounts, most, above: None }, output })
    }

    /// Lowers a reservation.
    pub(super) fn lower(&mut self, reservation: &mut Reservation, most: Amount) {
        let freed = reservation.most.minus(most);
        reservation.most = reservation.most.minus(freed);
        self.each(&reservation.accounts, |account| account.reserved = account.reserved.minus(freed));
    }

    /// The call cost this much. More than the most is charged too, so that a provider's count is never hidden.
    pub fn settle(&mut self, reservation: Reservation, cost: Amount) {
        let Reservation { accounts, most, above: _ } = reservation;
        self.each(&accounts, |account| {
            account.reserved = account.reserved.minus(most);
            account.spent = account.spent.plus(cost);
        });
        for id in accounts {
            self.sweep(id);
        }
    }

    /// The call was never made.
    pub fn release(&mut self, reservation: Reservation) {
        self.settle(reservation, Amount::default());
    }

    /// The cost of the call is unknown: it is charged at the most, and counted.
    pub fn abandon(&mut self, reservation: Reservation) {
        let charged = reservation.most;
        self.settle(reservation, charged);
        self.unsettled.calls += 1;
        self.unsettled.charged = self.unsettled.charged.plus(charged);
    }

    /// Takes no more reservations. The budget is removed when the last one is settled; a shared one after its lease is
    /// returned.
    pub fn retire(&mut self, scope: &Scope) {
        let Some(id) = self.names.get(scope).copied() else { return };
        self.each(&[id], |account| account.is_retired = true);
        self.sweep(id);
    }

    /// The spending of a budget, with its reservations.
    #[must_use]
    pub fn taken(&self, scope: &Scope) -> Amount {
        self.account(scope).map(Account::taken).unwrap_or_default()
    }

    /// The rest of a budget, of all that it limits; none if it is not open.
    #[must_use]
    pub fn left(&self, scope: &Scope) -> Option<Limits> {
        let account = self.account(scope)?;
        let left = account.limits.left(account.taken());
        Some(Limits {
            requests: account.limits.requests.map(|_| left.requests),
            tokens: account.limits.tokens.map(|_| left.tokens),
            micro_usd: account.limits.micro_usd.map(|_| left.micro_usd),
        })
    }

    /// The calls of unknown cost.
    #[must_use]
    pub fn unsettled(&self) -> Unsettled {
        self.unsettled
    }

    /// Every budget as it stands.
    #[must_use]
    pub fn snapshot(&self) -> Vec<BudgetState> {
        let state = |account: &Account| BudgetState {
            scope: account.scope.clone(),
            limits: account.limits,
            spent: account.spent,
            reserved: account.reserved,
            leased: account.lease.as_ref().map(|lease| lease.leased),
        };
        let mut states: Vec<_> = self.accounts.values().map(state).collect();
        states.sort_by(|a, b| a.scope.cmp(&b.scope));
        states
    }

    pub(super) fn remove(&mut self, id: u64) -> Option<Account> {
        let account = self.accounts.remove(&id)?;
        self.names.remove(&account.scope);
        Some(account)
    }

    fn account(&self, scope: &Scope) -> Option<&Account> {
        self.accounts.get(self.names.get(scope)?)
    }

    /// Takes an account away that is over. One that is shared goes when the others know.
    fn sweep(&mut self, id: u64) {
        let is_over = |account: &Account| {
            account.is_retired && account.lease.is_none() && account.reserved.is_nothing()
        };
        if self.accounts.get(&id).is_some_and(is_over) {
            self.remove(id);
        }
    }

    fn each(&mut self, accounts: &[u64], change: impl Fn(&mut Account)) {
        for id in accounts {
            if let Some(account) = self.accounts.get_mut(id) {
                change(account);
            }
        }
    }
}

#[cfg(test)]
mod tests;
