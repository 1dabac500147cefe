//! The background writer of events.

use std::sync::Arc;

use herma_store::EventWriter;

use crate::backend::on_every_engine;
use crate::sample::{events, rows, run};

#[test]
fn after_a_flush_the_events_of_the_run_are_in_the_store_in_order() {
    on_every_engine(|new| {
        let backend = new();
        let store = backend.open_blocking();
        let writer = Arc::new(EventWriter::new(store.clone()));
        writer.flush(run(1));
        let threads: Vec<_> = (1..5)
            .map(|n| {
                let writer = Arc::clone(&writer);
                std::thread::spawn(move || {
                    for event in &events(run(n), 200) {
                        writer.append(event);
                    }
                    writer.flush(run(n));
                })
            })
            .collect();
        for thread in threads {
            thread.join().unwrap();
        }
        for n in 1..5 {
            let stored = store.call(|store| store.events_after(run(n), None, u32::MAX)).unwrap();
            assert_eq!(stored, rows(&events(run(n), 200)));
        }
    });
}

#[test]
fn a_store_that_fails_for_a_while_gets_all_events_later() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("store.db");
    let store = herma_store::BlockingStore::open(&herma_store::StoreLocation::file(&file)).unwrap();
    let writer = EventWriter::new(store.clone());
    let events = events(run(1), 3);
    // The connection for events opens with the first one, and cannot.
    let log = dir.path().join("store.db-journal");
    std::fs::create_dir(&log).unwrap();
    writer.append(&events[0]);
    writer.append(&events[1]);
    writer.flush(run(2));
    let read = || store.call(|store| store.events_after(run(1), None, 9)).unwrap();
    assert!(read().is_empty(), "the store was out of reach");
    std::fs::remove_dir(&log).unwrap();
    writer.append(&events[2]);
    writer.flush(run(1));
    assert_eq!(read(), rows(&events));
}
