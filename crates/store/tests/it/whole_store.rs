//! Operations on the store as a whole: description, counts, forgetting the index, copies.

use herma_core::approval::{Answer, ApprovalState, Moved};
use herma_core::budget::{Amount, Limits, Scope};
use herma_core::store::{RunQuery, StoreCounts, StoreErrorKind, UsageBy};
use herma_store::{CopyPart, Store, StoreLocation, Table, TableValue, copy};
use tokio::sync::mpsc;

use crate::backend::{Backend, ENGINES, Process, block_on, on_every_engine, on_every_store};
use crate::sample::{at, events, report, request, rows, ruling, run, summary};
use crate::usage::{call, used};

fn scope() -> Scope {
    Scope::Engine("codex".into())
}

/// Three runs, of which the second was recorded first, four approvals, usage and a lease.
async fn fill(store: &Store) {
    for n in [2, 1, 3] {
        store.begin_run(&summary(n)).await.unwrap();
    }
    store.append_events(&rows(&events(run(3), 2))).await.unwrap();
    store.finish_run(&report(1), &events(run(1), 700)).await.unwrap();
    store.record_usage(&report(1), &used(&[call(1, "small", 5), call(2, "large", 7)])).await.unwrap();
    for n in 1..=4 {
        store.request_approval(&request(n), None).await.unwrap();
    }
    for (n, answer) in [(1, Answer::Granted), (2, Answer::Granted), (3, Answer::Denied)] {
        store.rule_on_approval(&ruling(&request(n), answer), at(10)).await.unwrap();
    }
    assert_eq!(store.consume_approval(request(1).id, run(1), at(20)).await.unwrap(), Moved::Done);
    let amount = Amount { requests: 1, tokens: 2, micro_usd: 3 };
    store.lease(&scope(), "a", amount, Limits::default()).await.unwrap();
}

fn all() -> RunQuery {
    RunQuery { limit: 99, before: None, status: None }
}

/// Everything that the interface shows.
async fn contents(store: &Store) -> Vec<String> {
    let mut texts = vec![format!("{:?}", store.runs(&all()).await.unwrap())];
    for n in 1..=3 {
        texts.push(format!("{:?}", store.events_after(run(n), None, u32::MAX).await.unwrap()));
        texts.push(format!("{:?}", store.artifacts(run(n)).await.unwrap()));
    }
    texts.push(format!("{:?}", store.approvals(None, 99).await.unwrap()));
    texts.push(format!("{:?}", store.usage(UsageBy::Run, None).await.unwrap()));
    texts.push(format!("{:?}", store.taken(&scope()).await.unwrap()));
    texts
}

#[test]
fn a_store_is_copied_from_every_engine_to_every_engine() {
    for from in ENGINES {
        for to in ENGINES {
            block_on(async {
                let (from, to): (Backend, Backend) = (from(), to());
                let (from, to) = (from.open().await, to.open().await);
                fill(&from).await;
                let counts = copy(&from, &to).await.unwrap();
                assert_eq!((counts.runs, counts.events, counts.approvals), (3, 702, 4));
                assert_eq!(contents(&to).await, contents(&from).await);
                // The next row is the newest there.
                to.begin_run(&summary(9)).await.unwrap();
                assert_eq!(to.runs(&all()).await.unwrap()[0], summary(9));
                to.request_approval(&request(9), None).await.unwrap();
                assert_eq!(to.approvals(None, 1).await.unwrap()[0].request, request(9));
                assert_eq!(
                    to.consume_approval(request(1).id, run(9), at(20)).await.unwrap(),
                    Moved::Stood(ApprovalState::Consumed)
                );
            });
        }
    }
}

#[test]
fn a_copy_goes_into_an_empty_store_only() {
    on_every_store(async |backend| {
        let (store, other) = (backend.open().await, backend.open().await);
        fill(&store).await;
        let before = contents(&store).await;
        let error = copy(&other, &store).await.unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Conflict, "{error}");
        assert_eq!(contents(&store).await, before);
    });
}

#[test]
fn a_copy_without_its_end_leaves_nothing() {
    on_every_store(async |backend| {
        let store = backend.open().await;
        let (sender, receiver) = mpsc::channel(4);
        let row = vec![
            TableValue::Text(Some(run(1).to_string())),
            TableValue::Integer(0),
            TableValue::Text(Some("run.started".to_owned())),
            TableValue::Text(Some("{}".to_owned())),
        ];
        sender.send(CopyPart::Rows(Table::Events, vec![row])).await.unwrap();
        drop(sender);
        assert!(store.import(receiver).await.is_err());
        assert_eq!(store.counts().await.unwrap(), StoreCounts::default());
    });
}

#[test]
fn forgetting_the_index_voids_approvals_that_were_not_used_and_keeps_those_that_were() {
    on_every_store(async |backend| {
        let store = backend.open().await;
        fill(&store).await;
        assert_eq!(store.clear_index().await.unwrap(), 2, "one granted, one requested");
        let counts = store.counts().await.unwrap();
        assert_eq!(counts, StoreCounts { approvals: 4, leases: 1, ..StoreCounts::default() });
        let states: Vec<_> = store.approvals(None, 9).await.unwrap().iter().map(|a| a.state).collect();
        let (expired, denied) = (ApprovalState::Expired, ApprovalState::Denied);
        assert_eq!(states, [expired, denied, expired, ApprovalState::Consumed]);
        store.finish_run(&report(1), &events(run(1), 3)).await.unwrap();
        assert_eq!(store.counts().await.unwrap().runs, 1);
    });
}

#[test]
fn the_description_names_engine_version_and_place() {
    on_every_engine(|new| {
        let backend = new();
        block_on(async {
            let about = backend.open().await.describe().await.unwrap();
            let location = |url: &str| url.parse::<StoreLocation>().unwrap();
            assert_eq!(location(&about.location), location(&backend.url));
            let (engine, schema) =
                if backend.url.starts_with("sqlite") { ("sqlite", 6) } else { ("postgresql", 1) };
            assert_eq!((&*about.engine, about.schema_version), (engine, schema));
            assert!(about.version.starts_with(|c: char| c.is_ascii_digit()), "{}", about.version);
        });
    });
}

#[test]
fn postgresql_knows_other_processes_and_forgets_killed_ones() {
    let backend = crate::backend::postgres();
    block_on(async {
        let store = backend.open().await;
        let others = async || store.describe().await.unwrap().other_processes;
        assert_eq!(others().await, 0, "its own sessions do not count");
        let mut other = Process::start("event-appender", &backend, &[&run(1).to_string(), "1000000"]);
        other.order("");
        assert_eq!(other.line().as_deref(), Some("0"));
        assert_eq!(others().await, 1);
        other.kill();
        while others().await > 0 {
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    });
}
