//! Events while a run goes on, at its end, and across processes.

use herma_core::store::EventRow;
use herma_core::{Event, RunId};
use herma_store::Store;

use crate::backend::{Backend, Process, block_on, on_every_engine, on_every_store};
use crate::sample::{events, report, rows, run, summary};

async fn all(store: &Store, run: RunId) -> Vec<EventRow> {
    store.events_after(run, None, u32::MAX).await.unwrap()
}

#[test]
fn events_are_read_from_any_place_on_in_order() {
    on_every_store(async |backend| {
        let store = backend.open().await;
        let (first, second) = (rows(&events(run(1), 600)), rows(&events(run(2), 2)));
        // The start of the run may be recorded later.
        store.append_events(&first[..300]).await.unwrap();
        store.append_events(&second).await.unwrap();
        store.append_events(&first[300..]).await.unwrap();
        store.begin_run(&summary(1)).await.unwrap();
        let reader = backend.open().await;
        assert_eq!(all(&reader, run(1)).await, first);
        assert_eq!(all(&reader, run(2)).await, second);
        assert_eq!(reader.events_after(run(1), Some(0), 2).await.unwrap(), first[1..3]);
        assert_eq!(reader.events_after(run(1), Some(598), 9).await.unwrap(), first[599..]);
        for (run, after) in [(run(1), 599), (run(1), u64::MAX), (run(3), 0)] {
            assert_eq!(reader.events_after(run, Some(after), 9).await.unwrap(), []);
        }
        let event: Event = first[1].event().unwrap();
        assert_eq!(event, events(run(1), 2)[1], "the line is the event");
    });
}

#[test]
fn a_row_that_was_appended_twice_is_there_once_as_it_was_first() {
    on_every_store(async |backend| {
        let store = backend.open().await;
        let first = rows(&events(run(1), 3));
        let mut other = first.clone();
        other[1].line = "{}".to_owned();
        store.append_events(&first).await.unwrap();
        store.append_events(&other).await.unwrap();
        store.append_events(&[]).await.unwrap();
        assert_eq!(all(&store, run(1)).await, first);
    });
}

#[test]
fn the_end_of_a_run_makes_its_events_those_of_the_bundle() {
    on_every_store(async |backend| {
        let store = backend.open().await;
        let bundle = events(run(1), 400);
        let expected = rows(&bundle);
        // Missing ones, one that a power cut took from the file and recovery replaced, and two after the last.
        let mut appended = expected.clone();
        appended[2].line = "{\"lost\":true}".to_owned();
        appended.extend([400, 401].map(|seq| EventRow { seq, ..expected[0].clone() }));
        appended.drain(5..300);
        store.append_events(&appended).await.unwrap();
        store.append_events(&rows(&events(run(2), 3))).await.unwrap();
        for _ in 0..2 {
            store.finish_run(&report(1), &bundle).await.unwrap();
            assert_eq!(all(&backend.open().await, run(1)).await, expected);
        }
        assert_eq!(all(&store, run(2)).await.len(), 3, "those of other runs stay");
    });
}

#[test]
fn another_process_sees_events_in_order_while_they_are_appended() {
    on_every_engine(|new| follow(&new()));
}

/// Follows a process that appends, kills it, and ends its run as recovery does.
fn follow(backend: &Backend) {
    const COUNT: u64 = 300;
    let mut appender = Process::start("event-appender", backend, &[&run(1).to_string(), "100000"]);
    appender.order("");
    block_on(async {
        let store = backend.open().await;
        let mut seen: Vec<EventRow> = Vec::new();
        while (seen.len() as u64) < COUNT {
            let after = seen.last().map(|row| row.seq);
            seen.extend(store.events_after(run(1), after, 7).await.unwrap());
            let in_order = seen.iter().zip(0..).all(|(row, seq)| row.seq == seq && row.run_id == run(1));
            assert!(in_order, "a gap: {:?}", seen.iter().map(|row| row.seq).collect::<Vec<_>>());
        }
        appender.kill();
        let mut reported = 0;
        while let Some(line) = appender.line() {
            reported = line.parse().unwrap();
        }
        let left = all(&store, run(1)).await;
        assert!(left.len() as u64 > reported, "{} rows, and {reported} was reported", left.len());
        let bundle = events(run(1), COUNT / 2);
        store.finish_run(&report(1), &bundle).await.unwrap();
        assert_eq!(all(&store, run(1)).await, rows(&bundle));
    });
}
