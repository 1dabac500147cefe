//! The background writer of events.

use std::sync::Arc;
use std::time::Duration;

use herma_core::RunId;
use herma_core::store::EventRow;
use herma_store::{BlockingStore, EventWriter, StoreLocation};

use crate::backend::on_every_engine;
use crate::sample::{events, rows, run};

/// The rows of a run once there are as many.
fn stored(store: &BlockingStore, run: RunId, count: usize) -> Vec<EventRow> {
    loop {
        let rows = store.call(|store| store.events_after(run, None, u32::MAX)).unwrap();
        if rows.len() >= count {
            return rows;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn the_events_of_a_run_in_progress_get_into_the_store_in_order() {
    on_every_engine(|new| {
        let backend = new();
        let store = backend.open_blocking();
        let writer = Arc::new(EventWriter::new(store.clone()));
        let threads: Vec<_> = (1..5)
            .map(|n| {
                let writer = Arc::clone(&writer);
                std::thread::spawn(move || {
                    for event in &events(run(n), 200) {
                        writer.append(event);
                    }
                })
            })
            .collect();
        for thread in threads {
            thread.join().unwrap();
        }
        for n in 1..5 {
            assert_eq!(stored(&store, run(n), 200), rows(&events(run(n), 200)));
        }
    });
}

#[test]
fn events_of_a_finished_run_are_not_written_later() {
    on_every_engine(|new| {
        let backend = new();
        let store = backend.open_blocking();
        let writer = EventWriter::new(store.clone());
        writer.finish(run(1));
        let at_the_end = (1..=100)
            .map(|n| {
                for event in &events(run(n), 2) {
                    writer.append(event);
                }
                writer.finish(run(n));
                let rows = store.call(|store| store.events_after(run(n), None, 9)).unwrap();
                (n, rows.len())
            })
            .collect::<Vec<_>>();
        // A later event is written after them.
        writer.append(&events(run(101), 1)[0]);
        stored(&store, run(101), 1);
        for (n, count) in at_the_end {
            assert_eq!(stored(&store, run(n), 0).len(), count, "run {n}");
        }
    });
}

#[test]
fn a_store_that_fails_for_a_while_gets_all_events_later() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("store.db");
    let store = BlockingStore::open(&StoreLocation::file(&file)).unwrap();
    let writer = EventWriter::new(store.clone());
    let events = events(run(1), 3);
    // The connection for events opens with the first one, and cannot.
    let log = dir.path().join("store.db-journal");
    std::fs::create_dir(&log).unwrap();
    writer.append(&events[0]);
    writer.append(&events[1]);
    // Several times as long as events wait for others.
    std::thread::sleep(Duration::from_millis(500));
    assert!(stored(&store, run(1), 0).is_empty(), "the store was out of reach");
    std::fs::remove_dir(&log).unwrap();
    writer.append(&events[2]);
    assert_eq!(stored(&store, run(1), 3), rows(&events));
}
