//! The index of runs.

use herma_core::blocker::Blocker;
use herma_core::store::{RunQuery, RunSummary};
use herma_core::{RunId, Status};

use crate::backend::{block_on, on_every_store};
use crate::sample::{report, run, summary};

fn query(limit: u32, before: Option<RunId>) -> RunQuery {
    RunQuery { limit, before, status: None }
}

#[test]
fn runs_are_listed_in_the_order_in_which_they_were_recorded_page_by_page() {
    on_every_store(async |backend| {
        let store = backend.open().await;
        for n in [2, 1, 3] {
            store.begin_run(&summary(n)).await.unwrap();
        }
        let page = store.runs(&query(2, None)).await.unwrap();
        assert_eq!(
            page,
            [summary(3), summary(1)],
            "run 1 was recorded after run 2, with a clock that was behind"
        );
        let rest = store.runs(&query(2, Some(run(1)))).await.unwrap();
        assert_eq!(rest, [summary(2)]);
        assert_eq!(store.runs(&query(9, Some(run(2)))).await.unwrap(), []);
        assert_eq!(
            store.runs(&query(9, Some(run(9)))).await.unwrap(),
            [],
            "an unknown cursor has nothing before it"
        );
    });
}

#[test]
fn a_run_is_found_by_the_start_of_its_name_or_its_last_digits() {
    on_every_store(async |backend| {
        let store = backend.open().await;
        store.begin_run(&summary(1)).await.unwrap();
        store.begin_run(&summary(2)).await.unwrap();
        let id = run(1);
        assert_eq!(store.find_runs(&id.to_string()).await.unwrap(), [summary(1)]);
        assert_eq!(store.find_runs(&id.short()).await.unwrap(), [summary(1)]);
        assert_eq!(store.find_runs("01").await.unwrap().len(), 2, "ambiguous");
        for none in ["%", "_", "'", ""] {
            let found = store.find_runs(none).await.unwrap();
            assert!(none.is_empty() || found.is_empty(), "no wildcards: {none}");
        }
    });
}

#[test]
fn the_end_of_a_run_is_recorded_once_and_keeps_its_place() {
    on_every_store(async |backend| {
        let store = backend.open().await;
        for n in [1, 2] {
            store.begin_run(&summary(n)).await.unwrap();
        }
        let mut failed = report(1);
        failed.status = Status::Blocked;
        failed.blockers = vec![Blocker::Interrupted.because("stopped")];
        let ended = RunSummary {
            finished_at: Some(failed.run_finished_at),
            status: Some(Status::Blocked),
            blockers: vec![Blocker::Interrupted],
            ..summary(1)
        };
        for _ in 0..2 {
            store.finish_run(&failed, &[]).await.unwrap();
            // A start that is recorded late does not undo the end.
            store.begin_run(&summary(1)).await.unwrap();
            let listed = backend.open().await.runs(&query(9, None)).await.unwrap();
            assert_eq!(listed, [summary(2), ended.clone()]);
        }
        let blocked = RunQuery { status: Some(Status::Blocked), ..query(9, None) };
        assert_eq!(store.runs(&blocked).await.unwrap(), [ended]);
        let passed = RunQuery { status: Some(Status::Pass), ..query(9, None) };
        assert_eq!(store.runs(&passed).await.unwrap(), []);
    });
}

#[test]
fn a_run_that_the_store_never_saw_is_recorded_at_its_end() {
    on_every_store(async |backend| {
        let store = backend.open().await;
        store.finish_run(&report(7), &[]).await.unwrap();
        let listed = store.runs(&query(9, None)).await.unwrap();
        assert_eq!(listed.len(), 1);
        assert_eq!((listed[0].run_id, listed[0].status), (run(7), Some(report(7).status)));
    });
}

#[test]
fn clones_and_runtimes_share_one_store() {
    on_every_store(async |backend| {
        let store = backend.open().await;
        let threads = (0..8_u32).map(|n| {
            let store = store.clone();
            std::thread::spawn(move || {
                block_on(async {
                    for m in 0..10 {
                        store.begin_run(&summary(10 * n + m)).await.unwrap();
                        assert!(!store.runs(&query(1, None)).await.unwrap().is_empty());
                    }
                });
            })
        });
        let threads: Vec<_> = threads.collect();
        for thread in threads {
            thread.join().unwrap();
        }
        assert_eq!(store.runs(&query(99, None)).await.unwrap().len(), 80);
    });
}
