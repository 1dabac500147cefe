//! Errors of SQLite and sqlx as errors of the store.

use herma_core::store::{StoreError, StoreErrorKind};
use sqlx::migrate::MigrateError;

/// Primary result codes of SQLite, <https://www.sqlite.org/rescode.html>.
const PERM: u32 = 3;
const BUSY: u32 = 5;
const LOCKED: u32 = 6;
const READONLY: u32 = 8;
const IOERR: u32 = 10;
const CORRUPT: u32 = 11;
const FULL: u32 = 13;
const CANTOPEN: u32 = 14;
const CONSTRAINT: u32 = 19;
const NOTADB: u32 = 26;

/// The failure of this operation.
pub(super) fn failed(operation: &'static str) -> impl Fn(sqlx::Error) -> StoreError {
    move |e| StoreError::new(kind(&e), operation, e)
}

/// A row that cannot be read: the bundles can rebuild it.
pub(super) fn unreadable<E: Into<Box<dyn std::error::Error + Send + Sync>>>(source: E) -> StoreError {
    StoreError::new(StoreErrorKind::Corrupt, "read a row", source)
}

/// A value that cannot be written.
pub(super) fn unwritable(source: serde_json::Error) -> StoreError {
    StoreError::new(StoreErrorKind::Internal, "write a row", source)
}

/// The failure to create or update the tables.
pub(super) fn not_migrated(error: MigrateError) -> StoreError {
    let kind = match &error {
        MigrateError::Execute(e) | MigrateError::ExecuteMigration(e, _) => kind(e),
        MigrateError::VersionMissing(_) | MigrateError::VersionMismatch(_) | MigrateError::Dirty(_) => {
            StoreErrorKind::Incompatible
        }
        _ => StoreErrorKind::Internal,
    };
    StoreError::new(kind, "update its tables", error)
}

/// Whether another process holds the lock.
pub(super) fn is_busy(error: &sqlx::Error) -> bool {
    primary_code(error) == Some(BUSY)
}

pub(super) fn kind(error: &sqlx::Error) -> StoreErrorKind {
    match (primary_code(error), error) {
        (Some(PERM | BUSY | LOCKED | READONLY | IOERR | FULL | CANTOPEN), _)
        | (None, sqlx::Error::Io(_) | sqlx::Error::WorkerCrashed) => StoreErrorKind::Unavailable,
        (Some(CONSTRAINT), _) => StoreErrorKind::Conflict,
        (Some(CORRUPT | NOTADB), _)
        | (
            None,
            sqlx::Error::ColumnDecode { .. } | sqlx::Error::Decode(_) | sqlx::Error::ColumnNotFound(_),
        ) => StoreErrorKind::Corrupt,
        _ => StoreErrorKind::Internal,
    }
}

/// The low byte of the result code; the others only refine it.
fn primary_code(error: &sqlx::Error) -> Option<u32> {
    let code: u32 = error.as_database_error()?.code()?.parse().ok()?;
    Some(code & 0xff)
}
