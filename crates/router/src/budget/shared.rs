//! The part of a ledger that is shared with other processes: what is leased, and what to lease next.

use std::sync::Arc;

use super::ledger::{Account, Ledger, Short};
use super::{Amount, LARGEST, Limits, Scope};

/// One lease is this part of a limit, or what a call needs, whichever is more. So most calls touch no store, and what
/// one process holds and does not spend is little.
const PARTS: u64 = 32;

/// What this process leased of a budget.
#[derive(Debug)]
pub(super) struct Lease {
    /// What was spent and what is set aside is a part of it.
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
    /// What is left of what is leased. What is not limited or not shared has [`LARGEST`] left.
    pub(super) fn leased_left(&self) -> Amount {
        let Some(lease) = &self.lease else { return Limits::default().left(Amount::default()) };
        let leased = Limits {
            requests: self.limits.requests.map(|_| lease.leased.requests),
            tokens: self.limits.tokens.map(|_| lease.leased.tokens),
            micro_usd: self.limits.micro_usd.map(|_| lease.leased.micro_usd),
        };
        leased.left(self.taken())
    }

    /// What to lease, so that `need` fits: a block at least, and nothing of what there is enough of.
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

    /// What is leased and lies idle, but for one block.
    fn idle(&self) -> Amount {
        match &self.lease {
            Some(lease) if self.reserved.is_nothing() => {
                lease.leased.minus(self.spent).minus(block(&self.limits))
            }
            _ => Amount::default(),
        }
    }
}

/// What is leased at once.
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

/// What has to be asked of the store.
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

    /// What to lease; none if others leased enough meanwhile, or the budget is gone.
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

    /// Takes out of a lease what lies idle. It is no longer spent, whether or not the store learns it.
    pub(super) fn take_idle(&mut self, account: u64) -> Option<Over> {
        let account = self.accounts.get_mut(&account)?;
        let idle = account.idle();
        let lease = account.lease.as_mut().filter(|_| !idle.is_nothing())?;
        lease.leased = lease.leased.minus(idle);
        Some(Over { scope: account.scope.clone(), leased: idle, spent: Amount::default() })
    }

    /// Takes a shared budget away that is retired and has nothing set aside, to be settled with the others.
    pub(super) fn take_over(&mut self, account: u64) -> Option<Over> {
        let is_over = |account: &Account| account.is_retired && account.reserved.is_nothing();
        if self.accounts.get(&account).is_some_and(is_over) { self.end(account) } else { None }
    }

    /// Takes a shared budget away. What is set aside in it counts as spent.
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
