//! Budgets that many calls and several processes spend from at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use herma_core::store::{StoreError, StoreErrorKind};
use herma_router::budget::{
    Amount, Ask, Budgets, InMemory, Lack, Later, LeaseError, Leases, Limits, Price, Reservation, Scope,
};
use herma_store::{Store, StoreLocation};
use tempfile::TempDir;
use tokio::task::JoinSet;

const EACH: u64 = 1_000;

fn ask() -> Ask {
    Ask { input: 300, output: EACH - 300, least_output: EACH - 300, choices: 1, price: None }
}

fn run() -> Scope {
    Scope::Run("a".into())
}

fn day() -> Scope {
    Scope::Day("2026-01-01".into())
}

fn engine() -> Scope {
    Scope::Engine("codex".into())
}

fn tokens(tokens: u64) -> Limits {
    Limits { tokens: Some(tokens), ..Limits::default() }
}

/// Leases that can be slow or out of reach, and that are counted.
#[derive(Default)]
struct Watched {
    leases: InMemory,
    slow: Duration,
    is_broken: bool,
    asked: AtomicU64,
}

impl Leases for Watched {
    fn lease<'a>(
        &'a self,
        scope: &'a Scope,
        holder: &'a str,
        want: Amount,
        limits: Limits,
    ) -> Later<'a, Result<Amount, LeaseError>> {
        Box::pin(async move {
            self.asked.fetch_add(1, Ordering::Relaxed);
            tokio::time::sleep(self.slow).await;
            if self.is_broken {
                let source = StoreError::new(StoreErrorKind::Unavailable, "lease", "gone");
                return Err(LeaseError { scope: scope.to_string(), operation: "leased", source });
            }
            self.leases.lease(scope, holder, want, limits).await
        })
    }

    fn settle<'a>(
        &'a self,
        scope: &'a Scope,
        holder: &'a str,
        leased: Amount,
        spent: Amount,
    ) -> Later<'a, Result<(), LeaseError>> {
        self.leases.settle(scope, holder, leased, spent)
    }

    fn reconcile<'a>(
        &'a self,
        scope: &'a Scope,
        holder: &'a str,
        spent: Amount,
    ) -> Later<'a, Result<(), LeaseError>> {
        self.leases.reconcile(scope, holder, spent)
    }

    fn taken<'a>(&'a self, scope: &'a Scope) -> Later<'a, Result<Amount, LeaseError>> {
        self.leases.taken(scope)
    }
}

/// Makes so many calls at once, and says which got something.
async fn at_once(budgets: &[Budgets], scopes: &[Scope], calls: usize) -> Vec<Reservation> {
    let mut tasks = JoinSet::new();
    for call in 0..calls {
        let (budgets, scopes) = (budgets[call % budgets.len()].clone(), scopes.to_vec());
        tasks.spawn(async move { budgets.reserve(&scopes, ask()).await });
    }
    let mut kept = Vec::new();
    while let Some(tried) = tasks.join_next().await {
        match tried.unwrap() {
            Ok(reserved) => kept.push(reserved.reservation),
            Err(exhausted) => assert_eq!(exhausted.what, Lack::Tokens),
        }
    }
    kept
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_two_hundred_calls_against_a_budget_for_fifty_exactly_fifty_are_made() {
    for round in 0..20 {
        let budgets = Budgets::default();
        for scope in [run(), day(), engine()] {
            budgets.open(scope, tokens(50 * EACH + round), Amount::default());
        }
        let kept = at_once(std::slice::from_ref(&budgets), &[run(), engine(), day()], 200).await;
        assert_eq!(kept.len(), 50, "round {round}");
        for scope in [run(), day(), engine()] {
            assert_eq!(budgets.taken(&scope).tokens, 50 * EACH);
        }
        for reservation in kept {
            budgets.settle(reservation, Amount { requests: 1, tokens: 10, micro_usd: 0 });
        }
        assert_eq!(budgets.taken(&day()), Amount { requests: 50, tokens: 500, micro_usd: 0 });
        assert!(budgets.snapshot().iter().all(|budget| budget.reserved == Amount::default()));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn several_holders_never_take_more_than_they_share() {
    let leases = Arc::new(InMemory::default());
    let holders: Vec<_> = (0..4).map(|n| Budgets::new(leases.clone(), &n.to_string())).collect();
    for budgets in &holders {
        budgets.open(day(), tokens(50 * EACH), Amount::default());
    }
    let kept = at_once(&holders, &[day()], 200).await;
    // The unused rest of each block keeps the last few calls from being made.
    assert!((46..=50).contains(&kept.len()), "{}", kept.len());
    assert!(leases.taken(&day()).await.unwrap().tokens <= 50 * EACH);
    let calls = kept.len() as u64;
    drop(kept);
    // A dropped reservation stays charged at the most, also when its process ends in order.
    for budgets in &holders {
        budgets.close().await.unwrap();
    }
    assert_eq!(leases.taken(&day()).await.unwrap().tokens, calls * EACH);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn most_calls_touch_no_store() {
    let leases = Arc::new(Watched { slow: Duration::from_millis(2), ..Watched::default() });
    let budgets = Budgets::new(leases.clone(), "a");
    budgets.open(
        day(),
        Limits { requests: Some(100_000), tokens: Some(320 * EACH), micro_usd: None },
        Amount::default(),
    );
    let kept = at_once(std::slice::from_ref(&budgets), &[day()], 300).await;
    assert_eq!(kept.len(), 300);
    // Blocks of ten calls.
    let asked = leases.asked.load(Ordering::Relaxed);
    assert!(asked <= 40, "{asked} leases for 300 calls");
}

#[tokio::test]
async fn idle_leases_are_returned_and_all_at_the_end() {
    let leases = Arc::new(InMemory::default());
    let (one, two) = (Budgets::new(leases.clone(), "one"), Budgets::new(leases.clone(), "two"));
    for budgets in [&one, &two] {
        budgets.open(day(), tokens(32 * EACH), Amount::default());
    }
    let all = Ask { input: 0, output: 32 * EACH, least_output: 32 * EACH, choices: 1, price: None };
    let kept = one.reserve(&[day()], all).await.unwrap();
    assert_eq!(two.reserve(&[day()], ask()).await.unwrap_err().what, Lack::Tokens);
    one.tidy().await.unwrap();
    assert_eq!(leases.taken(&day()).await.unwrap().tokens, 32 * EACH, "a call is under way");
    one.settle(kept.reservation, Amount { requests: 1, tokens: 5, micro_usd: 0 });
    one.tidy().await.unwrap();
    assert_eq!(leases.taken(&day()).await.unwrap().tokens, EACH + 5, "it keeps a block");
    let kept = two.reserve(&[day()], ask()).await.unwrap();
    two.settle(kept.reservation, Amount { requests: 1, tokens: 2 * EACH, micro_usd: 4 });
    one.close().await.unwrap();
    two.close().await.unwrap();
    // Also what was spent beyond the lease, and what no limit counts.
    assert_eq!(
        leases.taken(&day()).await.unwrap(),
        Amount { requests: 2, tokens: 2 * EACH + 5, micro_usd: 4 }
    );
    assert_eq!(one.reserve(&[day()], ask()).await.unwrap_err().what, Lack::Budget);
}

#[tokio::test]
async fn a_day_that_is_over_goes_when_its_last_call_is_settled() {
    let leases = Arc::new(InMemory::default());
    let budgets = Budgets::new(leases.clone(), "a");
    budgets.open(day(), tokens(32 * EACH), Amount::default());
    let kept = budgets.reserve(&[day()], ask()).await.unwrap();
    budgets.retire(&day());
    budgets.tidy().await.unwrap();
    assert_eq!(budgets.snapshot().len(), 1);
    budgets.settle(kept.reservation, Amount { requests: 1, tokens: 3, micro_usd: 0 });
    budgets.tidy().await.unwrap();
    assert!(budgets.snapshot().is_empty());
    assert_eq!(leases.taken(&day()).await.unwrap(), Amount { requests: 1, tokens: 3, micro_usd: 0 });
}

#[tokio::test]
async fn a_client_that_leaves_while_more_is_leased_leaves_no_lease_behind() {
    let leases = Arc::new(Watched { slow: Duration::from_millis(50), ..Watched::default() });
    let budgets = Budgets::new(leases.clone(), "a");
    budgets.open(day(), tokens(32 * EACH), Amount::default());
    let left = tokio::time::timeout(Duration::from_millis(10), budgets.reserve(&[day()], ask())).await;
    assert!(left.is_err());
    let _kept = budgets.reserve(&[day()], ask()).await.unwrap();
    assert_eq!(leases.asked.load(Ordering::Relaxed), 1, "it waited for the lease that was under way");
    let state = &budgets.snapshot()[0];
    assert_eq!(
        state.leased.unwrap(),
        leases.taken(&day()).await.unwrap(),
        "what the store charges is known here"
    );
}

#[tokio::test]
async fn a_store_that_does_not_answer_lets_no_call_through() {
    let budgets = Budgets::new(Arc::new(Watched { is_broken: true, ..Watched::default() }), "a");
    budgets.open(day(), tokens(32 * EACH), Amount::default());
    budgets.open(run(), tokens(32 * EACH), Amount::default());
    let refused = budgets.reserve(&[run(), day()], ask()).await.unwrap_err();
    assert_eq!((refused.scope, refused.what), (day(), Lack::Store));
    assert_eq!(budgets.taken(&run()), Amount::default());
}

#[tokio::test]
async fn a_shared_budget_in_money_lowers_the_output_too() {
    let budgets = Budgets::default();
    let price = Price { input: 0, output: 1_000_000, ..Price::default() };
    budgets.open(engine(), Limits { micro_usd: Some(100), ..Limits::default() }, Amount::default());
    let ask = Ask { input: 50, output: 70, least_output: 10, choices: 1, price: Some(price) };
    let outputs =
        [budgets.reserve(&[engine()], ask).await.unwrap(), budgets.reserve(&[engine()], ask).await.unwrap()];
    assert_eq!(outputs.each_ref().map(|reserved| reserved.output), [70, 30]);
    let refused = budgets.reserve(&[engine()], ask).await.unwrap_err();
    assert_eq!(
        (refused.to_string(), refused.what),
        ("the budget of engine codex does not allow it: usd".to_owned(), Lack::Usd)
    );
}

#[tokio::test]
async fn a_limit_that_is_lowered_holds_at_once() {
    let budgets = Budgets::default();
    budgets.open(day(), tokens(32 * EACH), Amount::default());
    let kept = budgets.reserve(&[day()], ask()).await.unwrap();
    budgets.open(day(), tokens(EACH), Amount::default());
    assert_eq!(budgets.reserve(&[day()], ask()).await.unwrap_err().what, Lack::Tokens);
    assert_eq!(budgets.taken(&day()).tokens, EACH, "what is set aside is still set aside");
    budgets.release(kept.reservation);
    let _kept = budgets.reserve(&[day()], ask()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn it_is_the_same_on_the_store() {
    let dir = TempDir::new().unwrap();
    let location = StoreLocation::file(dir.path().join("store.db"));
    let mut holders = Vec::new();
    for holder in ["one", "two"] {
        let store = Store::open(&location).await.unwrap();
        holders.push(Budgets::new(store.leases(), holder));
    }
    for budgets in &holders {
        budgets.open(day(), tokens(50 * EACH), Amount::default());
        budgets.open(engine(), tokens(500 * EACH), Amount::default());
    }
    let kept = at_once(&holders, &[engine(), day()], 200).await;
    assert!((48..=50).contains(&kept.len()), "{}", kept.len());
    for budgets in &holders {
        budgets.close().await.unwrap();
    }
    let leases = Store::open(&location).await.unwrap();
    for scope in [day(), engine()] {
        assert_eq!(leases.taken(&scope).await.unwrap().tokens, kept.len() as u64 * EACH);
    }
}
