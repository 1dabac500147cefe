//! The ledger: what was spent, what is set aside, and what nobody knows.

use std::collections::BTreeMap;

use super::amount::{Amount, Limits};

/// What a budget is for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    /// One run.
    Run(String),
    /// All runs of one engine.
    Engine(String),
    /// One day, in UTC.
    Day(String),
}

/// What was set aside for a call. It is given back to exactly one of [`Ledger::settle`], [`Ledger::release`] and
/// [`Ledger::abandon`]; dropping it leaves the most it can cost charged, which is never too little.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "what is set aside stays charged until it is settled"]
pub struct Reservation {
    id: u64,
    scopes: Vec<Scope>,
    most: Amount,
}

impl Reservation {
    /// The most that the call can cost.
    #[must_use]
    pub fn most(&self) -> Amount {
        self.most
    }
}

/// A call of which nobody knows what it cost; it is charged at the most.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unsettled {
    /// Which reservation.
    pub id: u64,
    /// What it is charged at.
    pub charged: Amount,
}

/// A budget does not allow the call.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the budget of {scope:?} is exhausted: {what}")]
pub struct Exhausted {
    /// Whose budget.
    pub scope: Scope,
    /// `requests`, `tokens` or `usd`.
    pub what: &'static str,
}

#[derive(Clone, Copy, Debug, Default)]
struct Account {
    limits: Limits,
    spent: Amount,
    reserved: Amount,
}

/// All budgets of a router. It is one value behind one lock: a reservation is taken from every scope or from none.
#[derive(Debug, Default)]
pub struct Ledger {
    accounts: BTreeMap<Scope, Account>,
    unsettled: Vec<Unsettled>,
    next: u64,
}

impl Ledger {
    /// Opens a budget, with what was spent of it before. One that is open keeps what was spent and set aside since.
    pub fn open(&mut self, scope: Scope, limits: Limits, spent: Amount) {
        let fresh = Account { spent, ..Account::default() };
        self.accounts.entry(scope).or_insert(fresh).limits = limits;
    }

    /// Sets aside the most that a call can cost, in every scope or in none. A scope without a budget is refused: what
    /// nobody limited was forgotten.
    pub fn reserve(&mut self, scopes: &[Scope], most: Amount) -> Result<Reservation, Exhausted> {
        for scope in scopes {
            let refuse = |what| Exhausted { scope: scope.clone(), what };
            let account = self.accounts.get(scope).ok_or_else(|| refuse("it was never opened"))?;
            let then = account.spent.plus(account.reserved).plus(most);
            if let Some(what) = account.limits.exceeded_by(then) {
                return Err(refuse(what));
            }
        }
        self.each(scopes, |account| account.reserved = account.reserved.plus(most));
        self.next += 1;
        Ok(Reservation { id: self.next, scopes: scopes.to_vec(), most })
    }

    /// The tokens that are left in the tightest of these scopes; none where none limits them. An output maximum is
    /// clamped to it.
    #[must_use]
    pub fn tokens_left(&self, scopes: &[Scope]) -> Option<u64> {
        let left = |account: &Account| {
            let taken = account.spent.plus(account.reserved).tokens;
            account.limits.tokens.map(|limit| limit.saturating_sub(taken))
        };
        scopes.iter().filter_map(|scope| self.accounts.get(scope).and_then(left)).min()
    }

    /// The call cost this much. More than the most is charged too, so that a provider's count is never hidden.
    pub fn settle(&mut self, reservation: Reservation, cost: Amount) {
        let Reservation { scopes, most, .. } = reservation;
        self.each(&scopes, |account| {
            account.reserved = account.reserved.minus(most);
            account.spent = account.spent.plus(cost);
        });
    }

    /// The call was never made.
    pub fn release(&mut self, reservation: Reservation) {
        self.settle(reservation, Amount::default());
    }

    /// Nobody knows what the call cost: it is charged at the most, and listed.
    pub fn abandon(&mut self, reservation: Reservation) {
        let (id, charged) = (reservation.id, reservation.most);
        self.settle(reservation, charged);
        self.unsettled.push(Unsettled { id, charged });
    }

    /// What was spent of a budget, with what is set aside.
    #[must_use]
    pub fn taken(&self, scope: &Scope) -> Amount {
        self.accounts.get(scope).map(|account| account.spent.plus(account.reserved)).unwrap_or_default()
    }

    /// The calls of which nobody knows what they cost.
    #[must_use]
    pub fn unsettled(&self) -> &[Unsettled] {
        &self.unsettled
    }

    fn each(&mut self, scopes: &[Scope], change: impl Fn(&mut Account)) {
        for scope in scopes {
            if let Some(account) = self.accounts.get_mut(scope) {
                change(account);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn tokens(tokens: u64) -> Amount {
        Amount { requests: 1, tokens, micro_usd: tokens }
    }

    fn run() -> Scope {
        Scope::Run("a".to_owned())
    }

    fn day() -> Scope {
        Scope::Day("2026-01-01".to_owned())
    }

    fn ledger(run_tokens: u64, day_tokens: u64) -> Ledger {
        let mut ledger = Ledger::default();
        for (scope, tokens) in [(run(), run_tokens), (day(), day_tokens)] {
            ledger.open(scope, Limits { tokens: Some(tokens), ..Limits::default() }, Amount::default());
        }
        ledger
    }

    #[test]
    fn a_call_is_set_aside_in_every_scope_or_in_none() {
        let mut ledger = ledger(100, 50);
        let refused = ledger.reserve(&[run(), day()], tokens(60)).unwrap_err();
        assert_eq!((refused.scope, refused.what), (day(), "tokens"));
        assert_eq!(ledger.taken(&run()), Amount::default());
        let kept = ledger.reserve(&[run(), day()], tokens(50)).unwrap();
        assert_eq!(ledger.tokens_left(&[run(), day()]), Some(0));
        ledger.settle(kept, tokens(20));
        assert_eq!((ledger.taken(&run()).tokens, ledger.tokens_left(&[run(), day()])), (20, Some(30)));
    }

    #[test]
    fn what_nobody_opened_nobody_may_spend() {
        let nobody = Scope::Engine("stub".to_owned());
        assert!(ledger(9, 9).reserve(&[nobody], tokens(0)).is_err());
    }

    #[test]
    fn what_nobody_knows_is_charged_at_the_most_and_listed() {
        let mut ledger = ledger(100, 100);
        let lost = ledger.reserve(&[run()], tokens(70)).unwrap();
        ledger.abandon(lost);
        assert_eq!(ledger.taken(&run()), tokens(70));
        assert_eq!(ledger.unsettled(), [Unsettled { id: 1, charged: tokens(70) }]);
    }

    /// What can happen to a call.
    #[derive(Clone, Debug)]
    enum End {
        Settled(u64),
        Released,
        Abandoned,
        Forgotten,
    }

    fn end() -> impl Strategy<Value = End> {
        prop_oneof![
            (0..100_u64).prop_map(End::Settled),
            Just(End::Released),
            Just(End::Abandoned),
            Just(End::Forgotten),
        ]
    }

    proptest! {
        #[test]
        fn no_order_of_calls_overshoots_a_budget(
            limit in 0..500_u64,
            calls in proptest::collection::vec((0..100_u64, end(), any::<bool>()), 0..60),
        ) {
            let mut ledger = ledger(limit, u64::MAX);
            let (mut open, mut cost) = (Vec::new(), 0);
            for (most, end, at_once) in calls {
                let Ok(kept) = ledger.reserve(&[run(), day()], tokens(most)) else { continue };
                open.push((kept, end));
                prop_assert!(ledger.taken(&run()).tokens <= limit);
                if !at_once { continue }
                for (kept, end) in open.drain(..) {
                    let most = kept.most().tokens;
                    match end {
                        End::Settled(used) => { cost += used.min(most); ledger.settle(kept, tokens(used.min(most))) }
                        End::Released => ledger.release(kept),
                        End::Abandoned => { cost += most; ledger.abandon(kept) }
                        End::Forgotten => { cost += most; drop(kept) }
                    }
                }
                prop_assert_eq!(ledger.taken(&run()).tokens, cost);
                prop_assert!(cost <= limit);
            }
        }
    }
}
