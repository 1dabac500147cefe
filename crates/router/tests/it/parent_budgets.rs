//! Budgets of runs that lie one in the other: what one spends counts against every one above it.

use herma_router::budget::{
    Amount, Ask, Budgets, InMemory, Lack, Limits, ParentLedger, Price, Reservation, Scope,
};
use proptest::prelude::*;
use std::sync::Arc;
use tokio::task::JoinSet;

fn scope(name: &str) -> Scope {
    Scope::Run(name.into())
}

fn tokens(tokens: u64) -> Limits {
    Limits { tokens: Some(tokens), ..Limits::default() }
}

fn cost(tokens: u64) -> Amount {
    Amount { requests: 1, tokens, micro_usd: 0 }
}

/// Asks for so much output, and is content with so little.
fn ask(output: u64, least_output: u64) -> Ask {
    Ask { input: 0, output, least_output, choices: 1, price: None }
}

/// A run whose budget is open.
struct Run {
    name: String,
    budgets: Budgets,
    above: Option<ParentLedger>,
}

impl Run {
    fn new(name: &str, limits: Limits, parent: Option<&Self>) -> Self {
        let above = parent.map(|parent| ParentLedger::new(parent.budgets.clone(), scope(&parent.name)));
        let budgets = Budgets::below(above.clone(), Arc::new(InMemory::default()), name);
        budgets.open(scope(name), limits, Amount::default());
        Self { name: name.to_owned(), budgets, above }
    }

    async fn reserve(&self, ask: Ask) -> Result<(Reservation, u64), (Scope, Lack)> {
        let reserved = self.budgets.reserve(&[scope(&self.name)], ask).await;
        reserved
            .map(|reserved| (reserved.reservation, reserved.output))
            .map_err(|exhausted| (exhausted.scope, exhausted.what))
    }

    fn taken(&self) -> u64 {
        self.budgets.taken(&scope(&self.name)).tokens
    }
}

fn three(limits: [Limits; 3]) -> [Run; 3] {
    let top = Run::new("top", limits[0], None);
    let middle = Run::new("middle", limits[1], Some(&top));
    let bottom = Run::new("bottom", limits[2], Some(&middle));
    [top, middle, bottom]
}

#[tokio::test]
async fn spending_of_a_child_counts_in_every_parent() {
    let [top, middle, bottom] = three([tokens(100), Limits::default(), tokens(100)]);
    let taken = || [top.taken(), middle.taken(), bottom.taken()];
    let (held, _) = bottom.reserve(ask(60, 60)).await.unwrap();
    assert_eq!(taken(), [60, 60, 60]);
    // The one in the middle has no limit of its own, and the top's holds for it.
    assert_eq!(middle.reserve(ask(41, 41)).await.unwrap_err(), (scope("top"), Lack::Tokens));
    assert_eq!(top.reserve(ask(41, 41)).await.unwrap_err(), (scope("top"), Lack::Tokens));
    assert_eq!(taken(), [60, 60, 60], "what was refused above stays set aside nowhere");
    bottom.budgets.settle(held, cost(10));
    assert_eq!(taken(), [10, 10, 10]);
    let (held, _) = middle.reserve(ask(30, 30)).await.unwrap();
    middle.budgets.abandon(held);
    assert_eq!(taken(), [40, 40, 10], "an unknown cost is charged at the most, in the parent too");
    assert_eq!(top.budgets.unsettled().calls, 1);
    let (held, _) = bottom.reserve(ask(30, 30)).await.unwrap();
    bottom.budgets.release(held);
    assert_eq!(taken(), [40, 40, 10]);
    let charged = |run: &Run| run.above.as_ref().unwrap().charged();
    assert_eq!(charged(&bottom), cost(10));
    assert_eq!(charged(&middle), cost(10).plus(cost(30)), "it contains its child budgets");
    // A dropped reservation leaves the most charged.
    drop(bottom.reserve(ask(60, 60)).await.unwrap());
    assert_eq!(taken(), [100, 100, 70]);
}

#[tokio::test]
async fn a_call_is_lowered_to_what_is_left_at_the_tightest_of_them_and_set_aside_as_that_everywhere() {
    for limits in [[50, 80, 90], [90, 50, 80], [80, 90, 50]] {
        let runs = three(limits.map(tokens));
        let (held, output) = runs[2].reserve(ask(1000, 1)).await.unwrap();
        assert_eq!((output, held.most().tokens), (50, 50), "{limits:?}");
        assert_eq!(runs.each_ref().map(Run::taken), [50; 3], "{limits:?}");
    }
}

#[tokio::test]
async fn a_budget_in_money_above_needs_a_price_below() {
    let limits = Limits { micro_usd: Some(100), ..Limits::default() };
    let runs = three([limits, Limits::default(), Limits::default()]);
    assert_eq!(runs[2].reserve(ask(10, 10)).await.unwrap_err(), (scope("top"), Lack::Price));
    let price = Price { output: 10_000_000, ..Price::default() };
    let priced = |output| Ask { price: Some(price), ..ask(output, output) };
    let (held, _) = runs[2].reserve(priced(10)).await.unwrap();
    assert_eq!(held.most().micro_usd, 100);
    assert_eq!(runs[1].reserve(priced(1)).await.unwrap_err(), (scope("top"), Lack::Usd));
}

#[tokio::test]
async fn a_run_that_has_ended_gives_those_below_it_nothing() {
    let runs = three([tokens(100); 3]);
    runs[1].budgets.retire(&scope("middle"));
    assert_eq!(runs[2].reserve(ask(1, 1)).await.unwrap_err(), (scope("middle"), Lack::Budget));
    assert_eq!(runs.each_ref().map(Run::taken), [0; 3]);
    // A budget that several processes share is none to lie below of.
    let budgets = Budgets::default();
    let day = Scope::Day("2026-01-01".into());
    budgets.open(day.clone(), tokens(100), Amount::default());
    let above = Some(ParentLedger::new(budgets, day));
    let below = Budgets::below(above, Arc::new(InMemory::default()), "a");
    below.open(scope("a"), Limits::default(), Amount::default());
    assert_eq!(below.reserve(&[scope("a")], ask(1, 1)).await.unwrap_err().what, Lack::Budget);
    assert_eq!(below.taken(&scope("a")), Amount::default());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_calls_of_a_run_and_its_children_stay_within_its_budget() {
    const EACH: u64 = 1_000;
    for round in 0..20 {
        let runs = three([tokens(50 * EACH + round), tokens(40 * EACH), tokens(30 * EACH)]);
        let mut tasks = JoinSet::new();
        for call in 0..300 {
            let run = &runs[call % 3];
            let (budgets, scope) = (run.budgets.clone(), scope(&run.name));
            tasks.spawn(async move {
                let reserved = budgets.reserve(&[scope], ask(EACH, EACH)).await;
                (call % 3, reserved.map(|reserved| reserved.reservation).ok())
            });
        }
        let (mut held, mut made) = (Vec::new(), [0; 3]);
        while let Some(done) = tasks.join_next().await {
            if let (at, Some(reservation)) = done.unwrap() {
                made[at] += EACH;
                held.push((at, reservation));
            }
            assert!(runs[0].taken() <= 50 * EACH + round);
        }
        let [top, middle, bottom] = made;
        assert_eq!(top + middle + bottom, 50 * EACH, "round {round}");
        assert!(middle + bottom <= 40 * EACH && bottom <= 30 * EACH, "round {round}: {made:?}");
        assert_eq!(runs.each_ref().map(Run::taken), [50 * EACH, middle + bottom, bottom]);
        for (at, reservation) in held {
            runs[at].budgets.settle(reservation, cost(1));
        }
        assert_eq!(runs[0].taken(), 50);
        for run in &runs {
            assert!(run.budgets.snapshot().iter().all(|budget| budget.reserved == Amount::default()));
        }
    }
}

/// An event of a call: it is made, it ends with a cost, it is never made, or its cost is unknown.
#[derive(Clone, Copy, Debug)]
enum Event {
    Reserve { run: usize, output: u64, least: u64 },
    Settle { held: usize, part: u64 },
    Release { held: usize },
    Abandon { held: usize },
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        3 => (0..3_usize, 1..60_u64, 1..60_u64).prop_map(|(run, output, least)| Event::Reserve { run, output, least }),
        1 => (any::<usize>(), 0..=100_u64).prop_map(|(held, part)| Event::Settle { held, part }),
        1 => any::<usize>().prop_map(|held| Event::Release { held }),
        1 => any::<usize>().prop_map(|held| Event::Abandon { held }),
    ]
}

proptest! {
    /// Whatever happens, every budget has taken what the calls of its run and of those below it cost or may cost, and
    /// never more than its limit. The reference adds all of it up anew each time.
    #[test]
    fn every_parent_budget_includes_its_children(
        limits in prop::array::uniform3(prop::option::of(20..200_u64)),
        events in prop::collection::vec(event(), 1..60),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let runs = three(limits.map(|limit| Limits { tokens: limit, ..Limits::default() }));
        let mut held: Vec<(usize, Reservation)> = Vec::new();
        // The charges of each run itself.
        let mut charged = [0; 3];
        for event in events {
            // A run's own calls and those of all below it.
            let taken = |held: &[(usize, Reservation)], charged: &[u64; 3], run: usize| -> u64 {
                let open: u64 = held.iter().filter(|(of, _)| *of >= run).map(|(_, held)| held.most().tokens).sum();
                open + charged[run..].iter().sum::<u64>()
            };
            match event {
                Event::Reserve { run, output, least } => {
                    let left = (0..=run).filter_map(|at| Some(limits[at]? - taken(&held, &charged, at))).min();
                    let fits = left.map_or(output, |left| left.min(output));
                    let got = runtime.block_on(runs[run].reserve(ask(output, least)));
                    prop_assert_eq!(got.as_ref().ok().map(|(_, output)| *output), (fits >= least.min(output)).then_some(fits));
                    if let Ok((reservation, _)) = got {
                        held.push((run, reservation));
                    }
                }
                Event::Settle { held: at, part } if !held.is_empty() => {
                    let (run, reservation) = held.swap_remove(at % held.len());
                    let used = reservation.most().tokens * part / 100;
                    charged[run] += used;
                    runs[run].budgets.settle(reservation, cost(used));
                }
                Event::Release { held: at } if !held.is_empty() => {
                    let (run, reservation) = held.swap_remove(at % held.len());
                    runs[run].budgets.release(reservation);
                }
                Event::Abandon { held: at } if !held.is_empty() => {
                    let (run, reservation) = held.swap_remove(at % held.len());
                    charged[run] += reservation.most().tokens;
                    runs[run].budgets.abandon(reservation);
                }
                _ => {}
            }
            for (at, run) in runs.iter().enumerate() {
                prop_assert_eq!(run.taken(), taken(&held, &charged, at));
                prop_assert!(limits[at].is_none_or(|limit| run.taken() <= limit));
                let below: u64 = charged[(at + 1).min(3)..].iter().sum();
                let counted = runs.get(at + 1).and_then(|child| child.above.as_ref());
                prop_assert_eq!(counted.map_or(0, |above| above.charged().tokens), below);
            }
        }
    }
}
