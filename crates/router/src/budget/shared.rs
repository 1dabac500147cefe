//! The part of a ledger that is shared with other processes: what is leased, and what to lease next.

use std::sync::Arc;

use super::ledger::{Account, Ledger, Short};
use super::{Amount, LARGEST, Limits, Scope};

/// One lease is this part of a limit, or what a call needs, whichever is more. So most calls touch no store, and what
/// one process holds and does not spend is little.
const PARTS: u64 = 32;

/// The lease of this process.
#[derive(Debug)]
pub(super) struct Lease {
    /// The leased amount; spending and reservations are a part of it.
    pub(super) leased: Amount,
    /// Held while more is leased or some is given back: one at a time.
    pub(super) changing: Arc<tokio::sync::Mutex<()>>,
}

impl Lease {
    pub(super) fn new(leased: Amount) -> Self {
        Self { leased, changing: Arc::default() }
    }
}

impl Account {
    /// The rest of the lease; [`LARGEST`] of amounts that are not limited or not shared.
    pub(super) fn leased_left(&self) -> Amount {
        let Some(lease) = &self.lease else { return Limits::default().left(Amount::default()) };
        let leased = Limits {
            requests: self.limits.requests.map(|_| lease.leased.requests),
            tokens: self.limits.tokens.map(|_| lease.leased.tokens),
            micro_usd: self.limits.micro_usd.map(|_| lease.leased.micro_usd),
        };
        leased.left(self.taken())
    }

    /// The amount to lease, so that `need` fits: at least a block, and only of amounts that are short.
    fn want(&self, need: Amount) -> Amount {
        let Some(lease) = &self.lease else { return Amount::default() };
        let missing = self.taken().plus(need).minus(lease.leased);
        let block = block(&self.limits);
        let part = |limit: Option<u64>, missing: u64, block: u64| match missing {
            0 => 0,
            missing => limit.map_or(0, |_| missing.max(block)),
        };
        Amount {
            micro_usd: part(self.limits.micro_usd, missing.micro_usd, block.micro_usd),
            requests: part(self.limits.requests, missing.requests, block.requests),
            tokens: part(self.limits.tokens, missing.tokens, block.tokens),
        }
    }

    /// The idle part of the lease, except for one block.
    fn idle(&self) -> Amount {
        match &self.lease {
            Some(lease) if self.reserved.is_nothing() => {
                lease.leased.minus(self.spent).minus(block(&self.limits))
            }
            _ => Amount::default(),
        }
    }
}

/// The amount of one lease.
fn block(limits: &Limits) -> Amount {
    let part = |limit: Option<u64>| limit.map_or(0, |limit| (limit / PARTS).clamp(1, LARGEST));
    Amount { micro_usd: part(limits.micro_usd), requests: part(limits.requests), tokens: part(limits.tokens) }
}

/// A shared budget that is over.
#[derive(Debug)]
pub(super) struct Over {
    pub(super) scope: Scope,
    pub(super) leased: Amount,
    pub(super) spent: Amount,
}

/// A request to the store.
#[derive(Debug)]
pub(super) struct Wanted {
    pub(super) scope: Scope,
    pub(super) want: Amount,
    pub(super) limits: Limits,
}

impl Ledger {
    /// The lock of a shared budget's lease; none if it is gone or not shared.
    pub(super) fn changing(&self, account: u64) -> Option<Arc<tokio::sync::Mutex<()>>> {
        Some(self.accounts.get(&account)?.lease.as_ref()?.changing.clone())
    }

    /// The amount to lease; none if other calls leased enough meanwhile, or the budget is gone.
    pub(super) fn wanted(&self, short: &Short) -> Option<Wanted> {
        let account = self.accounts.get(&short.account)?;
        let want = account.want(short.need);
        let wanted = Wanted { scope: account.scope.clone(), want, limits: account.limits };
        (!want.is_nothing()).then_some(wanted)
    }

    /// So much was leased.
    pub(super) fn leased(&mut self, account: u64, granted: Amount) {
        if let Some(lease) = self.accounts.get_mut(&account).and_then(|account| account.lease.as_mut()) {
            lease.leased = lease.leased.plus(granted);
        }
    }

    /// Removes the idle part of a lease. It is no longer spendable, whether or not the store is updated.
    pub(super) fn take_idle(&mut self, account: u64) -> Option<Over> {
        let account = self.accounts.get_mut(&account)?;
        let idle = account.idle();
        let lease = account.lease.as_mut().filter(|_| !idle.is_nothing())?;
        lease.leased = lease.leased.minus(idle);
        Some(Over { scope: account.scope.clone(), leased: idle, spent: Amount::default() })
    }

    /// Removes a shared budget that is retired and has no reservations, to be settled with the store.
    pub(super) fn take_over(&mut self, account: u64) -> Option<Over> {
        let is_over = |account: &Account| account.is_retired && account.reserved.is_nothing();
        if self.accounts.get(&account).is_some_and(is_over) { self.end(account) } else { None }
    }

    /// Removes a shared budget. Its reservations count as spent.
    pub(super) fn end(&mut self, account: u64) -> Option<Over> {
        let account = self.remove(account)?;
        let taken = account.taken();
        Some(Over { scope: account.scope, leased: account.lease?.leased, spent: taken })
    }

    /// Every shared budget.
    pub(super) fn shared(&self) -> Vec<u64> {
        self.accounts.iter().filter(|(_, account)| account.lease.is_some()).map(|(id, _)| *id).collect()
    }
}
