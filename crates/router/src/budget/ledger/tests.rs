use proptest::prelude::*;

use super::super::{LARGEST, Price};
use super::*;

fn run() -> Scope {
    Scope::Run("a".into())
}

/// A second budget that only this process knows.
fn other() -> Scope {
    Scope::Run("b".into())
}

fn tokens(tokens: u64) -> Limits {
    Limits { tokens: Some(tokens), ..Limits::default() }
}

fn ledger(budgets: &[(Scope, Limits)]) -> Ledger {
    let mut ledger = Ledger::default();
    for (scope, limits) in budgets {
        ledger.open(scope.clone(), *limits, Amount::default());
    }
    ledger
}

/// Asks for exactly so much output after no input.
fn exactly(output: u64) -> Ask {
    Ask { input: 0, output, least_output: output, choices: 1, price: None }
}

fn exhausted(ledger: &mut Ledger, scopes: &[Scope], ask: &Ask) -> (Scope, Lack) {
    match ledger.reserve(scopes, ask, &[]) {
        Err(NotReserved::Exhausted(Exhausted { scope, what })) => (scope, what),
        got => panic!("{got:?}"),
    }
}

const PRICE: Price = Price {
    input: 1_000_000,
    output: 10_000_000,
    cached_input: 0,
    cache_write: Some(1_000_000),
    cache_write_long: Some(1_000_000),
};

#[test]
fn a_call_is_set_aside_in_every_scope_or_in_none() {
    let mut ledger = ledger(&[(run(), tokens(100)), (other(), tokens(50))]);
    assert_eq!(exhausted(&mut ledger, &[run(), other()], &exactly(60)), (other(), Lack::Tokens));
    assert_eq!(ledger.taken(&run()), Amount::default());
    let kept = ledger.reserve(&[run(), other()], &exactly(50), &[]).unwrap();
    assert_eq!(ledger.left(&other()), Some(tokens(0)));
    ledger.settle(kept.reservation, Amount { requests: 1, tokens: 20, micro_usd: 0 });
    assert_eq!((ledger.taken(&run()).tokens, ledger.left(&other())), (20, Some(tokens(30))));
}

#[test]
fn a_budget_that_is_not_open_refuses() {
    let nobody = Scope::Engine("stub".into());
    assert_eq!(
        exhausted(&mut ledger(&[]), std::slice::from_ref(&nobody), &exactly(0)),
        (nobody, Lack::Budget)
    );
}

#[test]
fn an_unknown_cost_is_charged_at_the_most_and_counted() {
    let mut ledger = ledger(&[(run(), tokens(100))]);
    let lost = ledger.reserve(&[run()], &exactly(70), &[]).unwrap().reservation;
    let charged = lost.most();
    ledger.abandon(lost);
    assert_eq!(ledger.taken(&run()), Amount { requests: 1, tokens: 70, micro_usd: 0 });
    assert_eq!(ledger.unsettled(), Unsettled { calls: 1, charged });
}

#[test]
fn the_output_is_lowered_to_what_is_left_in_tokens_and_in_money() {
    let limits = Limits { tokens: Some(1_000), micro_usd: Some(5_000), requests: Some(9) };
    let mut ledger = ledger(&[(run(), limits)]);
    let ask = Ask { input: 100, output: 100_000, least_output: 16, choices: 1, price: Some(PRICE) };
    let money = ledger.reserve(&[run()], &ask, &[]).unwrap();
    assert_eq!(money.output, 490, "5,000 are enough for 100 in at 1 and 490 out at 10");
    ledger.release(money.reservation);
    let cheap = Ask { price: Some(Price { output: 1, ..PRICE }), choices: 2, ..ask };
    let counted = ledger.reserve(&[run()], &cheap, &[]).unwrap();
    assert_eq!((counted.output, counted.reservation.most().tokens), (450, 1_000), "for each of two answers");
    assert_eq!(exhausted(&mut ledger, &[run()], &cheap), (run(), Lack::Tokens));
}

#[test]
fn less_than_the_least_is_refused_and_takes_nothing() {
    let mut ledger = ledger(&[(run(), tokens(100))]);
    let ask = Ask { input: 90, output: 500, least_output: 11, choices: 1, price: None };
    assert_eq!(exhausted(&mut ledger, &[run()], &ask), (run(), Lack::Tokens));
    assert_eq!(ledger.taken(&run()), Amount::default());
    assert_eq!(ledger.reserve(&[run()], &Ask { least_output: 10, ..ask }, &[]).unwrap().output, 10);
}

#[test]
fn a_least_above_what_is_wanted_asks_for_what_is_wanted() {
    let mut ledger = ledger(&[(run(), tokens(100))]);
    let ask = Ask { input: 90, output: 5, least_output: 16, choices: 1, price: None };
    assert_eq!(ledger.reserve(&[run()], &ask, &[]).unwrap().output, 5);
}

#[test]
fn money_is_not_spent_where_nobody_knows_the_price() {
    let mut ledger = ledger(&[(run(), Limits { micro_usd: Some(LARGEST), ..Limits::default() })]);
    assert_eq!(exhausted(&mut ledger, &[run()], &exactly(1)), (run(), Lack::Price));
}

#[test]
fn calls_are_counted_also_where_tokens_are_not() {
    let mut ledger = ledger(&[(run(), Limits { requests: Some(1), ..Limits::default() })]);
    let _kept = ledger.reserve(&[run()], &exactly(LARGEST), &[]).unwrap();
    assert_eq!(exhausted(&mut ledger, &[run()], &exactly(0)), (run(), Lack::Requests));
}

#[test]
fn a_budget_that_is_named_twice_is_asked_once() {
    let mut ledger = ledger(&[(run(), tokens(10))]);
    let kept = ledger.reserve(&[run(), run()], &exactly(10), &[]).unwrap();
    assert_eq!(ledger.taken(&run()).tokens, 10);
    ledger.release(kept.reservation);
    assert_eq!(ledger.taken(&run()).tokens, 0);
}

#[test]
fn numbers_at_the_end_of_what_can_be_counted_fit_into_no_limit() {
    let mut ledger = ledger(&[(run(), tokens(LARGEST - 1))]);
    let ask =
        Ask { input: u64::MAX, output: u64::MAX, least_output: 1, choices: u64::MAX, price: Some(PRICE) };
    assert_eq!(exhausted(&mut ledger, &[run()], &ask), (run(), Lack::Tokens));
    let ask = Ask { input: 0, least_output: 0, ..ask };
    assert!(ledger.reserve(&[run()], &ask, &[]).unwrap().reservation.most().tokens < LARGEST);
}

#[test]
fn usage_beyond_the_reservation_is_charged_too() {
    let mut ledger = ledger(&[(run(), tokens(100))]);
    let kept = ledger.reserve(&[run()], &exactly(10), &[]).unwrap();
    ledger.settle(kept.reservation, Amount { requests: 1, tokens: 120, micro_usd: 0 });
    assert_eq!((ledger.taken(&run()).tokens, ledger.left(&run())), (120, Some(tokens(0))));
}

#[test]
fn a_retired_budget_goes_when_the_last_call_is_settled() {
    let mut ledger = ledger(&[(run(), tokens(100))]);
    let kept = ledger.reserve(&[run()], &exactly(10), &[]).unwrap();
    ledger.retire(&run());
    assert_eq!(exhausted(&mut ledger, &[run()], &exactly(1)), (run(), Lack::Budget));
    assert_eq!(ledger.snapshot().len(), 1);
    ledger.release(kept.reservation);
    assert!(ledger.snapshot().is_empty());
    // A new one of the same name has nothing to do with it.
    ledger.open(run(), tokens(5), Amount::default());
    assert_eq!(ledger.left(&run()), Some(tokens(5)));
}

#[test]
fn a_shared_budget_is_not_spent_before_it_is_leased() {
    let day = Scope::Day("2026-01-01".into());
    let mut ledger = ledger(&[(day.clone(), tokens(3_200))]);
    let Err(NotReserved::Short(short)) = ledger.reserve(std::slice::from_ref(&day), &exactly(10), &[]) else {
        panic!()
    };
    assert_eq!(ledger.wanted(&short).unwrap().want, Amount { tokens: 100, ..Amount::default() }, "a block");
    ledger.leased(short.account, Amount { tokens: 8, ..Amount::default() });
    // No more is to be had: it gets what is there.
    let ask = Ask { least_output: 1, ..exactly(10) };
    assert_eq!(ledger.reserve(&[day], &ask, &[short]).unwrap().output, 8);
}

/// An event of a call.
#[derive(Clone, Debug)]
enum End {
    Settled(u64),
    Released,
    Abandoned,
    Forgotten,
}

fn end() -> impl Strategy<Value = End> {
    prop_oneof![
        (0..=100_u64).prop_map(End::Settled),
        Just(End::Released),
        Just(End::Abandoned),
        Just(End::Forgotten)
    ]
}

fn ask() -> impl Strategy<Value = Ask> {
    let price = proptest::option::weighted(0.9, (0..3_000_000_u64, 0..30_000_000_u64));
    (0..60_u64, 0..200_u64, 0..200_u64, 0..3_u64, price).prop_map(
        |(input, output, least_output, choices, price)| {
            let price = price.map(|(input, output)| Price { input, output, ..Price::default() });
            Ask { input, output, least_output, choices, price }
        },
    )
}

fn limits() -> impl Strategy<Value = Limits> {
    let option = |most: u64| proptest::option::of(0..most);
    (option(20), option(800), option(8_000)).prop_map(|(requests, tokens, micro_usd)| Limits {
        requests,
        tokens,
        micro_usd,
    })
}

fn within(limits: &Limits, amount: Amount) -> bool {
    limits.requests.is_none_or(|limit| amount.requests <= limit)
        && limits.tokens.is_none_or(|limit| amount.tokens <= limit)
        && limits.micro_usd.is_none_or(|limit| amount.micro_usd <= limit)
}

proptest! {
    #[test]
    fn no_order_of_calls_overshoots_a_budget(
        of_run in limits(),
        of_other in limits(),
        calls in proptest::collection::vec((ask(), end(), any::<bool>()), 0..60),
    ) {
        let mut ledger = ledger(&[(run(), of_run), (other(), of_other)]);
        let (mut open, mut cost) = (Vec::new(), Amount::default());
        for (ask, end, at_once) in calls {
            let before = ledger.taken(&run());
            let Ok(Reserved { reservation, output }) = ledger.reserve(&[run(), other()], &ask, &[]) else {
                prop_assert_eq!(ledger.taken(&run()), before);
                // It was refused because the least did not fit, or the price is unknown.
                let least = before.plus(ask.most(ask.least_output.min(ask.output)));
                let no_price = ask.price.is_none() && (of_run.micro_usd.or(of_other.micro_usd).is_some());
                prop_assert!(no_price || !within(&of_run, least) || !within(&of_other, least));
                continue;
            };
            let most = reservation.most();
            prop_assert!(ask.least_output.min(ask.output) <= output && output <= ask.output);
            prop_assert_eq!(most, ask.most(output));
            let taken = ledger.taken(&run());
            prop_assert!(within(&of_run, taken) && within(&of_other, taken));
            prop_assert_eq!(taken, ledger.taken(&other()));
            // Not one token less than what fits.
            let one_more = before.plus(ask.most(output + 1));
            prop_assert!(output == ask.output || !within(&of_run, one_more) || !within(&of_other, one_more));
            open.push((reservation, end));
            if !at_once { continue }
            for (reservation, end) in open.drain(..) {
                let most = reservation.most();
                match end {
                    End::Settled(percent) => {
                        let part = |most: u64| most * percent / 100;
                        let used = Amount {
                            requests: 1, tokens: part(most.tokens), micro_usd: part(most.micro_usd),
                        };
                        cost = cost.plus(used);
                        ledger.settle(reservation, used);
                    }
                    End::Released => ledger.release(reservation),
                    End::Abandoned => { cost = cost.plus(most); ledger.abandon(reservation) }
                    End::Forgotten => { cost = cost.plus(most); drop(reservation) }
                }
            }
            prop_assert_eq!(ledger.taken(&run()), cost);
            prop_assert!(within(&of_run, cost));
        }
    }
}
