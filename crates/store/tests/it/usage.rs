//! The usage of models, summed by run, engine, model and day.

use herma_core::Report;
use herma_core::budget::Amount;
use herma_core::model_call::ModelCall;
use herma_core::store::UsageBy;
use herma_core::usage::UsageByModel;
use herma_store::Store;

use crate::backend::on_every_store;
use crate::sample::{report, run};

/// One answered call of a model with so many tokens, at two micro-dollars each.
pub(crate) fn call(day: u32, model: &str, tokens: u64) -> ModelCall {
    let mut call: ModelCall = serde_json::from_str(include_str!("model_call.json")).unwrap();
    call.charged = Amount { micro_usd: 2 * tokens, requests: 1, tokens };
    call.attempts[0].charged = call.charged;
    model.clone_into(&mut call.attempts[0].model);
    call.used.as_mut().unwrap().input = tokens;
    call.time = format!("2026-01-{day:02}T12:00:00Z").parse().unwrap();
    call
}

pub(crate) fn used(calls: &[ModelCall]) -> UsageByModel {
    let mut used = UsageByModel::default();
    for call in calls {
        used.add(call);
    }
    used
}

async fn sums(store: &Store, by: UsageBy) -> Vec<(String, u64, u64)> {
    let rows = store.usage(by, None).await.unwrap();
    rows.into_iter().map(|row| (row.key, row.usage.requests, row.usage.usd.0)).collect()
}

fn sum(key: &str, requests: u64, micro_usd: u64) -> (String, u64, u64) {
    (key.to_owned(), requests, micro_usd)
}

#[test]
fn usage_is_summed_by_each_key_and_recorded_once() {
    on_every_store(async |backend| {
        let store = backend.open().await;
        assert!(store.usage(UsageBy::Run, None).await.unwrap().is_empty());
        let other = Report { engine: "codex".parse().unwrap(), ..report(2) };
        store.record_usage(&report(1), &used(&[call(1, "small", 99)])).await.unwrap();
        for _ in 0..2 {
            store.record_usage(&report(1), &used(&[call(1, "small", 5), call(2, "large", 7)])).await.unwrap();
            store.record_usage(&other, &used(&[call(2, "small", 11)])).await.unwrap();
        }
        let store = backend.open().await;
        let (first, second) = (run(1).to_string(), run(2).to_string());
        assert_eq!(sums(&store, UsageBy::Run).await, [sum(&second, 1, 22), sum(&first, 2, 24)]);
        assert_eq!(sums(&store, UsageBy::Engine).await, [sum("codex", 1, 22), sum("fake", 2, 24)]);
        assert_eq!(sums(&store, UsageBy::Model).await, [sum("up/large", 1, 14), sum("up/small", 2, 32)]);
        assert_eq!(sums(&store, UsageBy::Day).await, [sum("2026-01-02", 2, 36), sum("2026-01-01", 1, 10)]);
    });
}

#[test]
fn herma_own_calls_and_unknown_costs_are_kept_apart() {
    on_every_store(async |backend| {
        let store = backend.open().await;
        let mut used = used(&[call(1, "small", 5)]);
        let mut unpriced = call(1, "local", 7);
        unpriced.charged.micro_usd = 0;
        unpriced.attempts[0].charged.micro_usd = 0;
        used.add(&unpriced);
        used.add_probe(&call(1, "small", 9));
        store.record_usage(&report(1), &used).await.unwrap();
        store.record_usage(&report(2), &used).await.unwrap();
        for (by, runs, keys) in [
            (UsageBy::Model, None, vec!["up/local", "up/small"]),
            (UsageBy::Engine, Some(&[run(2)][..]), vec!["fake"]),
            (UsageBy::Run, Some(&[][..]), vec![]),
        ] {
            let rows = store.usage(by, runs).await.unwrap();
            assert_eq!(rows.iter().map(|row| row.key.as_str()).collect::<Vec<_>>(), keys);
        }
        let rows = store.usage(UsageBy::Run, Some(&[run(1)])).await.unwrap();
        let [row] = &rows[..] else { panic!("{rows:?}") };
        let requests = (row.usage.requests, row.probes.requests, row.unpriced);
        assert_eq!((requests, row.usage.usd.0, row.probes.usd.0), ((2, 1, 1), 10, 18));
    });
}
