//! A PostgreSQL server that goes away and comes back.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::Duration;

use herma_core::approval::{Answer, Moved};
use herma_core::budget::{Amount, Limits, Scope};
use herma_core::store::{RunQuery, StoreErrorKind};
use herma_store::{BlockingStore, EventWriter};

use crate::postgres_server::Server;
use crate::sample::{at, events, report, request, rows, ruling, run, summary};

/// Several times as long as a call waits between two attempts; `scripts/long` names a longer time.
#[allow(clippy::disallowed_methods, reason = "the environment names the length of the test")]
fn outage() -> Duration {
    let seconds = std::env::var("STORE_OUTAGE_SECONDS").ok().map(|text| text.parse().unwrap());
    Duration::from_secs(seconds.unwrap_or(3))
}

#[test]
fn a_server_that_goes_away_loses_nothing_and_comes_back_by_itself() {
    let server = Server::start(&[]);
    let store = BlockingStore::open(&server.database().parse().unwrap()).unwrap();
    let writer = EventWriter::new(store.clone());
    let grant = |n| {
        let request = request(n);
        store.call(|store| store.request_approval(&request, None)).unwrap();
        let ruling = ruling(&request, Answer::Granted);
        assert_eq!(store.call(|store| store.rule_on_approval(&ruling, at(10))).unwrap(), Moved::Done);
    };
    (1..=8).for_each(grant);
    let first = summary(1);
    store.call(|store| store.begin_run(&first)).unwrap();
    let all = events(run(1), 30);
    all[..10].iter().for_each(|event| writer.append(event));

    let is_down = AtomicBool::new(true);
    server.stop();
    std::thread::scope(|scope| {
        // Every kind of call, each from its own thread, while the server is away.
        let (report, ended) = (report(2), events(run(2), 5));
        let store = &store;
        let finishing = scope.spawn(move || store.call(|store| store.finish_run(&report, &ended)));
        let listing = scope.spawn(|| {
            let query = RunQuery { limit: 9, before: None, status: None };
            store.call(|store| store.runs(&query)).map(|runs| (runs, is_down.load(Ordering::SeqCst)))
        });
        let consuming: Vec<_> = (1..=8)
            .map(|n| {
                scope.spawn(move || store.call(|store| store.consume_approval(request(n).id, run(n), at(20))))
            })
            .collect();
        let scope_of_lease = Scope::Engine("codex".into());
        let amount = Amount { requests: 1, ..Amount::default() };
        let lease = store.store().leases();
        let leasing = scope.spawn(move || {
            crate::backend::block_on(lease.lease(&scope_of_lease, "a", amount, Limits::default()))
        });
        all[10..20].iter().for_each(|event| writer.append(event));
        sleep(outage());
        is_down.store(false, Ordering::SeqCst);
        server.resume();

        finishing.join().unwrap().unwrap();
        let (runs, was_down) = listing.join().unwrap().unwrap();
        assert!(!was_down && !runs.is_empty(), "it waited for the server");
        for consumed in consuming {
            assert_eq!(consumed.join().unwrap().unwrap(), Moved::Done);
        }
        assert_eq!(leasing.join().unwrap().unwrap(), amount);
    });
    all[20..].iter().for_each(|event| writer.append(event));
    while store.call(|store| store.events_after(run(1), None, 99)).unwrap() != rows(&all) {
        sleep(Duration::from_millis(20));
    }
    for n in 1..=8 {
        let moved = store.call(|store| store.consume_approval(request(n).id, run(99), at(20))).unwrap();
        assert_eq!(moved, Moved::Stood(herma_core::approval::ApprovalState::Consumed));
    }
}

#[test]
fn a_server_that_is_away_is_reported_with_its_place_and_the_next_step() {
    let server = Server::start(&[]);
    let url = server.database();
    server.stop();
    let error = BlockingStore::open(&url.parse().unwrap()).err().unwrap();
    assert_eq!(error.kind(), StoreErrorKind::Unavailable);
    let text = error.to_string();
    for part in [url.as_str(), "could not open", "start PostgreSQL, or correct the URL"] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

/// Restarts the server again and again while processes of the store use it: what was reported as done is there.
#[test]
fn a_consumption_that_was_reported_survives_crashes_of_the_server() {
    let server = Server::start(&[]);
    let store = BlockingStore::open(&server.database().parse().unwrap()).unwrap();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let using = scope.spawn(|| {
            let mut done = Vec::new();
            for n in 1.. {
                if stop.load(Ordering::SeqCst) {
                    return done;
                }
                let request = request(n);
                let ruling = ruling(&request, Answer::Granted);
                store.call(|store| store.request_approval(&request, None)).unwrap();
                let ruled = store.call(|store| store.rule_on_approval(&ruling, at(10))).unwrap();
                assert_eq!(ruled, Moved::Done, "request {n}");
                let moved = store.call(|store| store.consume_approval(request.id, run(n), at(20))).unwrap();
                assert_eq!(moved, Moved::Done, "request {n}");
                done.push(n);
            }
            done
        });
        for _ in 0..5 {
            sleep(Duration::from_millis(300));
            server.stop();
            server.resume();
        }
        stop.store(true, Ordering::SeqCst);
        let done = using.join().unwrap();
        assert!(done.len() > 5, "it was no race: {done:?}");
        let consumed = store.call(|store| store.approvals(None, u32::MAX)).unwrap();
        let consumed = consumed.iter().filter(|approval| approval.consumed_by.is_some()).count();
        assert_eq!(consumed, done.len());
    });
}
