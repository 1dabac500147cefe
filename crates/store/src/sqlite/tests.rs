//! Files, older tables and concurrent first uses. The suite in `tests/it` checks the interface.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use herma_core::engine::{DestinationKind, EngineName};
use herma_core::store::StoreErrorKind;
use herma_core::{Digest, Stage};

use super::*;

/// Keeps the store open while the test waits for it.
fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

fn all_runs() -> RunQuery {
    RunQuery { limit: 99, before: None, status: None }
}

fn run(n: u8) -> RunSummary {
    let at = format!("2026-01-01T00:00:{n:02}Z").parse().unwrap();
    RunSummary {
        run_id: RunId::new(at, [n; 10]),
        contract_id: "trim-slug".parse().unwrap(),
        contract_digest: Digest::of(b"contract"),
        engine: EngineName::fake(),
        destination: DestinationKind::Sandbox,
        stage: Stage::Fixture,
        started_at: at,
        finished_at: None,
        status: None,
        blockers: Vec::new(),
    }
}

impl SqliteEngine {
    /// Opens a store with the tables of an older version.
    async fn open_old(file: &Path, migrations: usize) -> Self {
        Self::open_with(file, &migrations::up_to(migrations)).await.unwrap()
    }

    /// Records a run as versions did that sorted by name.
    async fn insert_without_order(&self, run: &RunSummary) {
        let insert = sqlx::query(
            "INSERT INTO runs (run_id, short, contract_id, contract_digest, engine, destination, stage, started_at) \
             VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        )
        .bind(run.run_id.to_string())
        .bind(run.run_id.short())
        .bind(run.contract_id.as_str())
        .bind(run.contract_digest.to_string())
        .bind(run.engine.as_str())
        .bind(run.destination.as_str())
        .bind(i64::from(u8::from(run.stage)))
        .bind(run.started_at.to_string());
        insert.execute(&mut *self.writer().await).await.unwrap();
    }
}

#[test]
fn a_store_of_an_older_version_keeps_its_order_and_a_new_run_is_the_newest() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("store.db");
    block_on(async {
        let old = SqliteEngine::open_old(&file, 4).await;
        for n in [2, 1] {
            old.insert_without_order(&run(n)).await;
        }
        drop(old);
        let store = SqliteEngine::open(&file).await.unwrap();
        store.begin_run(&run(0)).await.unwrap();
        assert_eq!(store.runs(&all_runs()).await.unwrap(), [run(0), run(2), run(1)]);
    });
}

#[test]
fn a_store_of_an_older_version_gets_every_later_table() {
    for version in 1..6 {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("store.db");
        block_on(async {
            let old = SqliteEngine::open_old(&file, version).await;
            old.insert_without_order(&run(1)).await;
            assert_eq!(old.approvals(None, 1).await.is_err(), version < 5, "{version}");
            assert_eq!(old.usage(UsageBy::Run, None).await.is_err(), version < 4, "{version}");
            assert!(old.events_after(run(1).run_id, None, 1).await.is_err(), "{version}");
            drop(old);
            let store = SqliteEngine::open(&file).await.unwrap();
            assert_eq!(store.runs(&all_runs()).await.unwrap(), [run(1)], "{version}");
            assert!(store.approvals(None, 1).await.unwrap().is_empty(), "{version}");
            assert!(store.events_after(run(1).run_id, None, 1).await.unwrap().is_empty(), "{version}");
            for by in [UsageBy::Run, UsageBy::Engine, UsageBy::Model, UsageBy::Day] {
                assert!(store.usage(by, None).await.unwrap().is_empty(), "{version}");
            }
        });
    }
}

#[test]
fn a_store_of_a_newer_version_is_refused_as_incompatible() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("store.db");
    block_on(async {
        drop(SqliteEngine::open(&file).await.unwrap());
        let error = SqliteEngine::open_with(&file, &migrations::up_to(2)).await.err().unwrap();
        assert_eq!(error.kind(), StoreErrorKind::Incompatible, "{error}");
    });
}

#[test]
fn the_log_stays_short_however_much_is_written() {
    let dir = tempfile::tempdir().unwrap();
    block_on(async {
        let store = SqliteEngine::open(&dir.path().join("store.db")).await.unwrap();
        for n in 0..60 {
            store.begin_run(&run(n)).await.unwrap();
        }
        let (log, page) = (fs::metadata(dir.path().join("store.db-wal")).unwrap().len(), 4096);
        assert!(log <= 2 * u64::from(connection::MAX_LOG_PAGES) * page, "{log}");
    });
}

#[test]
fn concurrent_first_uses_agree_on_the_tables() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("store.db");
    std::thread::scope(|scope| {
        for n in 1..9 {
            let file = &file;
            scope.spawn(move || {
                block_on(async { SqliteEngine::open(file).await.unwrap().begin_run(&run(n)).await.unwrap() });
            });
        }
    });
    block_on(async {
        let store = SqliteEngine::open(&file).await.unwrap();
        assert_eq!(store.runs(&all_runs()).await.unwrap().len(), 8);
    });
}

#[test]
fn the_files_belong_to_the_owner_only() {
    let dir = tempfile::tempdir().unwrap();
    block_on(async {
        let store = SqliteEngine::open(&dir.path().join("store.db")).await.unwrap();
        store.begin_run(&run(1)).await.unwrap();
        for name in ["store.db", "store.db-wal", "store.db-shm"] {
            let mode = fs::metadata(dir.path().join(name)).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600, "{name}");
        }
    });
}

#[test]
fn a_file_that_is_no_database_is_corrupt_and_a_directory_is_unavailable() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("store.db");
    fs::write(&file, "this is no database, and it is long enough to be one. ".repeat(40)).unwrap();
    block_on(async {
        let error = SqliteEngine::open(&file).await.err().unwrap();
        assert_eq!(error.kind(), StoreErrorKind::Corrupt, "{error}");
        let error = SqliteEngine::open(dir.path()).await.err().unwrap();
        assert_eq!(error.kind(), StoreErrorKind::Unavailable, "{error}");
    });
}

#[test]
fn a_row_that_cannot_be_parsed_is_corrupt() {
    let dir = tempfile::tempdir().unwrap();
    block_on(async {
        let store = SqliteEngine::open(&dir.path().join("store.db")).await.unwrap();
        store.begin_run(&run(1)).await.unwrap();
        let update = sqlx::query("UPDATE runs SET contract_digest = 'x'");
        update.execute(&mut *store.writer().await).await.unwrap();
        let error = store.runs(&all_runs()).await.unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Corrupt, "{error}");
    });
}

#[test]
fn events_that_wait_for_a_lock_fail_without_delaying_reads() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("store.db");
    block_on(async {
        let (store, other) =
            (SqliteEngine::open(&file).await.unwrap(), SqliteEngine::open(&file).await.unwrap());
        let writer = &mut *other.writer().await;
        let _locked = connection::begin(writer).await.unwrap();
        let row =
            EventRow { run_id: run(1).run_id, seq: 0, kind: "run.started".to_owned(), line: "{}".to_owned() };
        let (rows, query) = ([row], all_runs());
        let (appended, read) = tokio::join!(store.append_events(&rows), store.runs(&query));
        assert_eq!(appended.unwrap_err().kind(), StoreErrorKind::Unavailable);
        assert!(read.unwrap().is_empty());
    });
}
