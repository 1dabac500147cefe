//! The store on one SQLite file.

use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use herma_core::event::Event;
use herma_core::report::Report;
use herma_core::store::{RunQuery, RunSummary, Store, StoreError};
use herma_files::{check_regular_or_absent, open_with};
use sqlx::migrate::{Migration, MigrationType, Migrator};
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection, SqliteJournalMode, SqliteSynchronous};
use sqlx::{AssertSqlSafe, Connection, QueryBuilder, SqlStr, Sqlite};
use tokio::runtime::Runtime;

use crate::rows::{COLUMNS, summary, text};

/// How many rows one statement writes: each statement is a way to the connection's own thread and back.
const AT_ONCE: usize = 256;

/// The store on one SQLite file, durable on every commit (write-ahead log, `synchronous = FULL`).
pub struct SqliteStore {
    inner: Mutex<Inner>,
}

/// The connection, and what drives it.
pub(crate) struct Inner {
    // Dropped first: closing the connection does not need the runtime, but its worker must not outlive us.
    pub(crate) connection: SqliteConnection,
    pub(crate) runtime: Runtime,
}

impl SqliteStore {
    /// Opens the store, making the file and its tables where they are missing.
    pub fn open(file: &Path) -> Result<Self, StoreError> {
        Self::open_with(file, MIGRATIONS)
    }

    fn open_with(file: &Path, migrations: &'static [(&str, &str)]) -> Result<Self, StoreError> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .map_err(|e| StoreError { doing: "start", cause: e.to_string() })?;
        make_private(file)?;
        let connection = runtime.block_on(async {
            let mut connection = connect(&options(file)).await.map_err(error("open"))?;
            migrate(&mut connection, migrations).await?;
            Ok(connection)
        })?;
        Ok(Self { inner: Mutex::new(Inner { connection, runtime }) })
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Inner> {
        // A panic elsewhere cannot leave a half-made change: every change is one transaction.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Makes the file where it is missing, for its owner only; SQLite's own files beside it get the same permissions.
fn make_private(file: &Path) -> Result<(), StoreError> {
    let failed =
        |file: &Path, e: &io::Error| StoreError { doing: "open", cause: format!("{}: {e}", file.display()) };
    // SQLite opens each of them by itself, and would wait for a FIFO.
    for suffix in ["-wal", "-shm", "-journal"] {
        let mut beside = file.as_os_str().to_owned();
        beside.push(suffix);
        let beside = PathBuf::from(beside);
        check_regular_or_absent(&beside).map_err(|e| failed(&beside, &e))?;
    }
    let mut options = OpenOptions::new();
    open_with(options.append(true).create(true).mode(0o600), file).map(drop).map_err(|e| failed(file, &e))
}

/// After how many pages of its log SQLite writes them into the file itself. Every command is the first to open the store, and
/// has to read what is left of the log before anything else: a few runs of it, and not a megabyte.
const MOST_LOGGED: &str = "64";

/// How every connection to a store is made.
pub(crate) fn options(file: &Path) -> SqliteConnectOptions {
    SqliteConnectOptions::new()
        .filename(file)
        .pragma("wal_autocheckpoint", MOST_LOGGED)
        .create_if_missing(true)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Full)
        .foreign_keys(true)
        .busy_timeout(Duration::from_secs(30))
}

/// Connects. SQLite does not wait for another first use that switches the file to its log, but says that it is busy.
pub(crate) async fn connect(options: &SqliteConnectOptions) -> Result<SqliteConnection, sqlx::Error> {
    for _ in 0..BUSY_TRIES {
        match SqliteConnection::connect_with(options).await {
            Err(e) if is_busy(&e) => std::thread::sleep(BUSY_PAUSE),
            result => return result,
        }
    }
    SqliteConnection::connect_with(options).await
}

const BUSY_TRIES: u32 = 500;
const BUSY_PAUSE: Duration = Duration::from_millis(20);

fn is_busy(error: &sqlx::Error) -> bool {
    // The low byte is the kind, the others say more about it.
    let code = error.as_database_error().and_then(|e| e.code()?.parse::<u32>().ok());
    code.is_some_and(|code| code & 0xff == 5)
}

/// What made the tables as they are, oldest first. One that was released never changes.
pub(crate) const MIGRATIONS: &[(&str, &str)] = &[
    ("runs", include_str!("../migrations/0001_runs.sql")),
    ("approvals", include_str!("../migrations/0002_approvals.sql")),
    ("leases", include_str!("../migrations/0003_leases.sql")),
    ("usage", include_str!("../migrations/0004_usage.sql")),
    ("order", include_str!("../migrations/0005_order.sql")),
];

/// Brings the tables up to date. Two first uses at once race for the same tables; the loser finds them made.
pub(crate) async fn migrate(
    connection: &mut SqliteConnection,
    migrations: &'static [(&str, &str)],
) -> Result<(), StoreError> {
    let steps = migrations.iter().zip(1..).map(|((name, sql), version)| {
        Migration::new(version, (*name).into(), MigrationType::Simple, SqlStr::from_static(sql), false)
    });
    let migrator = Migrator::with_migrations(steps.collect());
    let mut result = migrator.run_direct(None, &mut *connection, false).await;
    // Each loses at most once to every step that another makes.
    for _ in 0..4 * migrations.len() {
        if result.is_ok() {
            break;
        }
        result = migrator.run_direct(None, &mut *connection, false).await;
    }
    result.map_err(|e| StoreError { doing: "update its tables", cause: e.to_string() })
}

pub(crate) fn error(doing: &'static str) -> impl Fn(sqlx::Error) -> StoreError {
    move |e| StoreError { doing, cause: e.to_string() }
}

impl Store for SqliteStore {
    fn begin(&self, run: &RunSummary) -> Result<(), StoreError> {
        let Inner { connection, runtime } = &mut *self.lock();
        runtime.block_on(insert(connection, run))
    }

    fn finish(&self, report: &Report, events: &[Event]) -> Result<(), StoreError> {
        let Inner { connection, runtime } = &mut *self.lock();
        runtime.block_on(async {
            let mut tx = connection.begin().await.map_err(error("begin"))?;
            // The run may be unknown: killed before it was recorded, or the store was lost.
            insert(&mut tx, &summary_of(report)).await?;
            let blockers: Vec<_> = report.blockers.iter().map(|b| b.blocker).collect();
            sqlx::query("UPDATE runs SET finished_at = ?, status = ?, blockers = ? WHERE run_id = ?")
                .bind(report.run_finished_at.to_string())
                .bind(report.status.as_str())
                .bind(text(&blockers)?)
                .bind(report.run_id.to_string())
                .execute(&mut *tx)
                .await
                .map_err(error("record the verdict"))?;
            insert_events(&mut tx, events).await?;
            insert_artifacts(&mut tx, report).await?;
            tx.commit().await.map_err(error("commit"))
        })
    }

    fn runs(&self, query: &RunQuery) -> Result<Vec<RunSummary>, StoreError> {
        let Inner { connection, runtime } = &mut *self.lock();
        let before =
            if query.before.is_some() { "seq < (SELECT seq FROM runs WHERE run_id = ?)" } else { "1" };
        let mut sql = format!("SELECT {COLUMNS} FROM runs WHERE {before}");
        if query.status.is_some() {
            sql.push_str(" AND status = ?");
        }
        sql.push_str(" ORDER BY seq DESC LIMIT ?");
        let mut statement = sqlx::query(AssertSqlSafe(sql));
        if let Some(before) = query.before {
            statement = statement.bind(before.to_string());
        }
        if let Some(status) = query.status {
            statement = statement.bind(status.as_str());
        }
        let rows = runtime
            .block_on(statement.bind(i64::from(query.limit)).fetch_all(connection))
            .map_err(error("list the runs"))?;
        rows.iter().map(summary).collect()
    }

    fn find(&self, part: &str) -> Result<Vec<RunSummary>, StoreError> {
        let Inner { connection, runtime } = &mut *self.lock();
        let sql = format!(
            "SELECT {COLUMNS} FROM runs WHERE (run_id >= ?1 AND run_id < ?1 || '~') OR short = ?1 LIMIT 2"
        );
        let rows = runtime
            .block_on(sqlx::query(AssertSqlSafe(sql)).bind(part).fetch_all(connection))
            .map_err(error("find a run"))?;
        rows.iter().map(summary).collect()
    }
}

async fn insert(connection: &mut SqliteConnection, run: &RunSummary) -> Result<(), StoreError> {
    sqlx::query(
        "INSERT OR IGNORE INTO runs (run_id, short, contract_id, contract_digest, engine, destination, stage, \
         started_at, seq) VALUES (?, ?, ?, ?, ?, ?, ?, ?, (SELECT coalesce(max(seq), 0) + 1 FROM runs))",
    )
    .bind(run.run_id.to_string())
    .bind(run.run_id.short())
    .bind(run.contract_id.as_str())
    .bind(run.contract_digest.to_string())
    .bind(run.engine.as_str())
    .bind(run.destination.as_str())
    .bind(i64::from(u8::from(run.stage)))
    .bind(run.started_at.to_string())
    .execute(connection)
    .await
    .map(drop)
    .map_err(error("record a run"))
}

async fn insert_events(connection: &mut SqliteConnection, events: &[Event]) -> Result<(), StoreError> {
    for some in events.chunks(AT_ONCE) {
        let rows = some.iter().map(|event| Ok((event, text(&event.source)?, text(&event.data)?)));
        let rows: Vec<_> = rows.collect::<Result<_, StoreError>>()?;
        QueryBuilder::<Sqlite>::new("INSERT OR REPLACE INTO events ")
            .push_values(rows, |mut row, (event, source, data)| {
                row.push_bind(event.run_id.to_string())
                    .push_bind(i64::try_from(event.seq).unwrap_or(i64::MAX))
                    .push_bind(event.ts.to_string())
                    .push_bind(source)
                    .push_bind(event.kind.as_str())
                    .push_bind(data);
            })
            .build()
            .execute(&mut *connection)
            .await
            .map_err(error("record the events"))?;
    }
    Ok(())
}

async fn insert_artifacts(connection: &mut SqliteConnection, report: &Report) -> Result<(), StoreError> {
    let artifacts: Vec<_> = report.artifacts.iter().collect();
    for some in artifacts.chunks(AT_ONCE) {
        QueryBuilder::<Sqlite>::new("INSERT OR REPLACE INTO artifacts ")
            .push_values(some, |mut row, (path, artifact)| {
                row.push_bind(report.run_id.to_string())
                    .push_bind(path.as_str())
                    .push_bind(artifact.sha256.to_string())
                    .push_bind(i64::try_from(artifact.size).unwrap_or(i64::MAX))
                    .push_bind(artifact.written_at.to_string());
            })
            .build()
            .execute(&mut *connection)
            .await
            .map_err(error("record the artifacts"))?;
    }
    Ok(())
}

fn summary_of(report: &Report) -> RunSummary {
    RunSummary {
        run_id: report.run_id,
        contract_id: report.contract_id.clone(),
        contract_digest: report.contract_digest,
        engine: report.engine.clone(),
        destination: report.destination,
        stage: report.stage,
        started_at: report.run_started_at,
        finished_at: Some(report.run_finished_at),
        status: Some(report.status),
        blockers: report.blockers.iter().map(|b| b.blocker).collect(),
    }
}

#[cfg(test)]
mod tests {
    use herma_core::approval::ApprovalStore as _;
    use herma_core::engine::{DestinationKind, EngineName};
    use herma_core::{Digest, RunId, Stage};

    use super::*;

    impl SqliteStore {
        /// Records a run as a herma did that knew no order but that of names.
        fn insert_without_order(&self, run: &RunSummary) {
            let Inner { connection, runtime } = &mut *self.lock();
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
            runtime.block_on(insert.execute(connection)).unwrap();
        }
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

    #[test]
    fn runs_are_listed_in_the_order_in_which_they_were_recorded_page_by_page() {
        let dir = tempfile::tempdir().unwrap();
        let store = SqliteStore::open(&dir.path().join("store.db")).unwrap();
        for n in [2, 1, 3] {
            store.begin(&run(n)).unwrap();
        }
        let page = store.runs(&RunQuery { limit: 2, before: None, status: None }).unwrap();
        assert_eq!(page, [run(3), run(1)], "run 1 was recorded after run 2, with a clock that was behind");
        let rest = store.runs(&RunQuery { limit: 2, before: Some(run(1).run_id), status: None }).unwrap();
        assert_eq!(rest, [run(2)]);
        assert_eq!(
            store.runs(&RunQuery { limit: 9, before: Some(run(9).run_id), status: None }).unwrap(),
            []
        );
    }

    #[test]
    fn a_store_of_an_older_herma_keeps_its_order_and_a_new_run_is_the_newest() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("store.db");
        let old = SqliteStore::open_with(&file, &MIGRATIONS[..4]).unwrap();
        for n in [2, 1] {
            old.insert_without_order(&run(n));
        }
        drop(old);
        let store = SqliteStore::open(&file).unwrap();
        store.begin(&run(0)).unwrap();
        let listed = store.runs(&RunQuery { limit: 9, before: None, status: None }).unwrap();
        assert_eq!(listed, [run(0), run(2), run(1)]);
    }

    #[test]
    fn however_much_is_written_little_of_it_is_left_in_the_log() {
        let dir = tempfile::tempdir().unwrap();
        let store = SqliteStore::open(&dir.path().join("store.db")).unwrap();
        (0..60).for_each(|n| store.begin(&run(n)).unwrap());
        let (log, page) = (std::fs::metadata(dir.path().join("store.db-wal")).unwrap().len(), 4096);
        let most: u64 = MOST_LOGGED.parse().unwrap();
        assert!(log <= 2 * most * page, "{log}");
    }

    #[test]
    fn a_run_is_found_by_the_start_of_its_name_or_its_last_digits() {
        let dir = tempfile::tempdir().unwrap();
        let store = SqliteStore::open(&dir.path().join("store.db")).unwrap();
        store.begin(&run(1)).unwrap();
        store.begin(&run(2)).unwrap();
        let id = run(1).run_id;
        assert_eq!(store.find(&id.to_string()).unwrap(), [run(1)]);
        assert_eq!(store.find(&id.short()).unwrap(), [run(1)]);
        assert_eq!(store.find("01").unwrap().len(), 2, "ambiguous");
        assert!(store.find("%").unwrap().is_empty(), "no wildcards");
    }

    #[test]
    fn a_store_of_an_older_herma_keeps_its_runs_and_learns_approvals() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("store.db");
        let old = SqliteStore::open_with(&file, &MIGRATIONS[..1]).unwrap();
        old.insert_without_order(&run(1));
        assert!(old.approvals(None, 1).is_err());
        drop(old);
        let store = SqliteStore::open(&file).unwrap();
        assert_eq!(store.runs(&RunQuery { limit: 2, before: None, status: None }).unwrap(), [run(1)]);
        assert!(store.approvals(None, 1).unwrap().is_empty());
    }

    #[test]
    fn a_store_of_an_older_herma_learns_what_runs_used() {
        use herma_core::store::{UsageBy, UsageStore as _};
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("store.db");
        let old = SqliteStore::open_with(&file, &MIGRATIONS[..2]).unwrap();
        old.insert_without_order(&run(1));
        assert!(old.usage(UsageBy::Run).is_err());
        drop(old);
        let store = SqliteStore::open(&file).unwrap();
        for by in [UsageBy::Run, UsageBy::Engine, UsageBy::Model, UsageBy::Day] {
            assert!(store.usage(by).unwrap().is_empty());
        }
    }

    #[test]
    fn first_uses_at_once_agree_on_the_tables() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("store.db");
        std::thread::scope(|scope| {
            for n in 1..9 {
                let file = &file;
                scope.spawn(move || SqliteStore::open(file).unwrap().begin(&run(n)).unwrap());
            }
        });
        let store = SqliteStore::open(&file).unwrap();
        assert_eq!(store.runs(&RunQuery { limit: 20, before: None, status: None }).unwrap().len(), 8);
    }
}
