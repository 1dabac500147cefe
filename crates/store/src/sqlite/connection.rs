//! Connections to the file.

use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use herma_core::store::{StoreError, StoreErrorKind};
use herma_files::{check_regular_or_absent, open_with};
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection, SqliteJournalMode, SqliteSynchronous};
use sqlx::{Connection as _, Sqlite, Transaction};

use super::error::{failed, is_busy};

/// The number of log pages after which SQLite checkpoints. Every command opens the store anew and first reads what is left
/// of the log, so that it has to be short.
pub(super) const MAX_LOG_PAGES: u32 = 64;

/// How often a connection is tried while another process switches the file to its log, and the pause between.
const MAX_CONNECT_ATTEMPTS: u32 = 500;
const CONNECT_RETRY_PAUSE: Duration = Duration::from_millis(20);

/// When a committed change survives a power cut.
#[derive(Clone, Copy)]
pub(super) enum Durability {
    /// At its commit.
    Commit,
    /// At the next checkpoint or the next commit of a connection with [`Durability::Commit`].
    Checkpoint,
}

impl Durability {
    /// The setting, and how long a change waits for the lock of another process. Events can be written later as well.
    fn settings(self) -> (SqliteSynchronous, Duration) {
        match self {
            Self::Commit => (SqliteSynchronous::Full, Duration::from_secs(30)),
            Self::Checkpoint => (SqliteSynchronous::Normal, Duration::from_secs(2)),
        }
    }
}

/// Opens a connection that cannot write.
pub(super) async fn connect_to_read(file: &Path) -> Result<SqliteConnection, StoreError> {
    let (_, busy_timeout) = Durability::Commit.settings();
    let options = SqliteConnectOptions::new().filename(file).read_only(true).busy_timeout(busy_timeout);
    SqliteConnection::connect_with(&options).await.map_err(failed("open"))
}

/// Opens a connection, and creates the file where it is missing.
pub(super) async fn connect(file: &Path, durability: Durability) -> Result<SqliteConnection, StoreError> {
    create_private(file)?;
    let (synchronous, busy_timeout) = durability.settings();
    let options = SqliteConnectOptions::new()
        .filename(file)
        .pragma("wal_autocheckpoint", MAX_LOG_PAGES.to_string())
        .create_if_missing(true)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(synchronous)
        .foreign_keys(true)
        .busy_timeout(busy_timeout);
    // The busy timeout does not cover the switch to the log, which another process may be making.
    for _ in 1..MAX_CONNECT_ATTEMPTS {
        match SqliteConnection::connect_with(&options).await {
            Err(e) if is_busy(&e) => tokio::time::sleep(CONNECT_RETRY_PAUSE).await,
            result => return result.map_err(failed("open")),
        }
    }
    SqliteConnection::connect_with(&options).await.map_err(failed("open"))
}

/// Creates the file for its owner only; SQLite gives its own files beside it the same permissions.
fn create_private(file: &Path) -> Result<(), StoreError> {
    let cannot = |file: &Path, e: io::Error| {
        let source = io::Error::new(e.kind(), format!("{}: {e}", file.display()));
        StoreError::new(StoreErrorKind::Unavailable, "open", source)
    };
    // SQLite opens each of them and would block on a FIFO.
    for suffix in ["-wal", "-shm", "-journal"] {
        let mut beside = file.as_os_str().to_owned();
        beside.push(suffix);
        let beside = PathBuf::from(beside);
        check_regular_or_absent(&beside).map_err(|e| cannot(&beside, e))?;
    }
    let mut options = OpenOptions::new();
    open_with(options.append(true).create(true).mode(0o600), file).map(drop).map_err(|e| cannot(file, e))
}

/// Begins a transaction that holds the write lock: nothing that it reads can change before it commits.
pub(super) async fn begin(connection: &mut SqliteConnection) -> Result<Transaction<'_, Sqlite>, StoreError> {
    connection.begin_with("BEGIN IMMEDIATE").await.map_err(failed("begin"))
}
