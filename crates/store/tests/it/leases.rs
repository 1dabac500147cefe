//! Leases: of one process, of several at once, and of some that are killed.

use std::hash::{BuildHasher as _, Hasher as _};

use herma_core::budget::{Amount, LARGEST, Limits, Scope};

use crate::backend::{Backend, Process, block_on, on_every_engine, on_every_store};

fn engine() -> Scope {
    Scope::Engine("codex".into())
}

fn amount(requests: u64, tokens: u64, micro_usd: u64) -> Amount {
    Amount { requests, tokens, micro_usd }
}

#[test]
fn a_lease_is_charged_until_its_holder_says_what_it_spent() {
    on_every_store(async |backend| {
        let leases = backend.open().await;
        let limits = Limits { requests: Some(10), tokens: Some(100), micro_usd: None };
        assert_eq!(leases.lease(&engine(), "a", amount(4, 60, 7), limits).await.unwrap(), amount(4, 60, 7));
        assert_eq!(leases.lease(&engine(), "b", amount(7, 60, 7), limits).await.unwrap(), amount(6, 40, 7));
        assert_eq!(leases.lease(&engine(), "b", amount(1, 1, 0), limits).await.unwrap(), Amount::default());
        assert_eq!(leases.taken(&engine()).await.unwrap(), amount(10, 100, 14));
        drop(leases);

        let leases = backend.open().await;
        assert_eq!(leases.taken(&engine()).await.unwrap(), amount(10, 100, 14), "it is durable");
        // Less than it leased of one, more of another.
        leases.settle(&engine(), "a", amount(4, 60, 7), amount(5, 1, 0)).await.unwrap();
        assert_eq!(leases.taken(&engine()).await.unwrap(), amount(11, 41, 7));
        // It died, and its audit records how much it spent.
        leases.reconcile(&engine(), "b", amount(2, 2, 2)).await.unwrap();
        assert_eq!(leases.taken(&engine()).await.unwrap(), amount(7, 3, 2));
        leases.reconcile(&engine(), "c", amount(1, 1, 1)).await.unwrap();
        assert_eq!(leases.taken(&engine()).await.unwrap(), amount(8, 4, 3), "also of one that never leased");
        let other = Scope::Day("codex".into());
        assert_eq!(
            leases.taken(&other).await.unwrap(),
            Amount::default(),
            "of the same name, but another kind"
        );
    });
}

#[test]
fn nothing_is_given_back_that_was_not_taken() {
    on_every_store(async |backend| {
        let leases = backend.open().await;
        let limits = Limits { tokens: Some(100), ..Limits::default() };
        leases.lease(&engine(), "a", amount(0, 50, 0), limits).await.unwrap();
        leases.settle(&engine(), "b", amount(0, 50, 0), Amount::default()).await.unwrap();
        leases.settle(&engine(), "a", amount(0, 90, 0), Amount::default()).await.unwrap();
        assert_eq!(leases.taken(&engine()).await.unwrap(), Amount::default());
        leases.settle(&engine(), "a", Amount::default(), amount(0, u64::MAX, 0)).await.unwrap();
        assert_eq!(leases.taken(&engine()).await.unwrap().tokens, LARGEST);
        assert_eq!(leases.lease(&engine(), "a", amount(0, 1, 0), limits).await.unwrap(), Amount::default());
    });
}

/// A process that leases until the budget is exhausted.
struct Taker(Process);

impl Taker {
    fn start(backend: &Backend, holder: &str, limit: u64, seed: u64) -> Self {
        Self(Process::start("lease-taker", backend, &[holder, &limit.to_string(), &seed.to_string()]))
    }

    fn go(&mut self) {
        self.0.order("");
    }

    /// The amounts that it reported, until it ends or has reported so many.
    fn has(&mut self, most: usize) -> Vec<u64> {
        let lines = std::iter::from_fn(|| self.0.line());
        lines.take(most).map(|line| line.parse().unwrap()).collect()
    }
}

#[test]
fn processes_that_lease_at_once_never_take_more_than_there_is() {
    const LIMIT: u64 = 20_000;
    on_every_engine(|new| lease_at_once(&new(), LIMIT));
}

fn lease_at_once(backend: &Backend, limit: u64) {
    let seed = std::hash::RandomState::new().build_hasher().finish();
    let mut takers = ["a", "b", "c"]
        .map(|holder| Taker::start(backend, holder, limit, seed ^ u64::from(holder.as_bytes()[0])));
    takers.iter_mut().for_each(Taker::go);
    let has = takers.each_mut().map(|taker| *taker.has(usize::MAX).last().unwrap());
    block_on(async {
        let leases = backend.open().await;
        let taken = leases.taken(&engine()).await.unwrap().tokens;
        assert_eq!(taken, has.iter().sum::<u64>(), "{has:?}, seed {seed}");
        assert_eq!(taken, limit, "each ended because there was no more; seed {seed}");
        assert!(has.iter().filter(|has| **has > 0).count() > 1, "it was no race: {has:?}, seed {seed}");
    });
}

#[test]
fn a_killed_process_is_charged_at_least_what_it_reported() {
    on_every_engine(|new| lease_and_kill(&new()));
}

fn lease_and_kill(backend: &Backend) {
    const LIMIT: u64 = 1 << 40;
    for kill in 0..20_u64 {
        let holder = format!("holder-{kill}");
        let before = block_on(async { backend.open().await.taken(&engine()).await.unwrap().tokens });
        let mut taker = Taker::start(backend, &holder, LIMIT, kill);
        taker.go();
        let reported = taker.has(1 + usize::try_from(kill).unwrap());
        drop(taker);
        block_on(async {
            let leases = backend.open().await;
            let has = leases.taken(&engine()).await.unwrap().tokens - before;
            // After its last line it can have leased more, or given back half of one lease.
            assert!(has + 100 > *reported.last().unwrap(), "{has} {reported:?}");
            leases.reconcile(&engine(), &holder, amount(1, 3, 0)).await.unwrap();
            assert_eq!(leases.taken(&engine()).await.unwrap(), amount(kill + 1, 3 * (kill + 1), 0));
        });
    }
}
