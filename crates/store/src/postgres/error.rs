//! Errors of PostgreSQL and sqlx as errors of the store.

use std::error::Error;
use std::fmt;

use herma_core::store::{StoreError, StoreErrorKind};
use sqlx::migrate::MigrateError;

/// A statement of a call failed, or one of its values cannot be converted.
pub(super) enum CallError {
    /// The database or the connection to it.
    Sql(&'static str, sqlx::Error),
    /// Anything else, which no repetition changes.
    Store(StoreError),
}

impl From<StoreError> for CallError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

/// The failure of this operation.
pub(super) fn failed(operation: &'static str) -> impl Fn(sqlx::Error) -> CallError + Copy {
    move |error| CallError::Sql(operation, error)
}

/// An error with the database that it is about, and what to do.
#[derive(Debug)]
pub(super) struct AtDatabase {
    pub(super) place: String,
    pub(super) next_step: &'static str,
    pub(super) source: Box<dyn Error + Send + Sync>,
}

impl fmt::Display for AtDatabase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.source)?;
        if self.next_step.is_empty() { Ok(()) } else { write!(f, "; {}", self.next_step) }
    }
}

impl Error for AtDatabase {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&*self.source)
    }
}

/// The error of a database, with its place.
pub(super) fn at_database(place: &str, operation: &'static str, error: sqlx::Error) -> StoreError {
    let (kind, next_step) = (kind(&error), next_step(&error));
    StoreError::new(
        kind,
        operation,
        AtDatabase { place: place.to_owned(), next_step, source: Box::new(error) },
    )
}

/// The failure to create or update the tables.
pub(super) fn not_migrated(place: &str, error: MigrateError) -> StoreError {
    let (kind, next_step) = match &error {
        MigrateError::Execute(e) | MigrateError::ExecuteMigration(e, _) => (kind(e), next_step(e)),
        MigrateError::VersionMissing(_) | MigrateError::VersionMismatch(_) | MigrateError::Dirty(_) => {
            (StoreErrorKind::Incompatible, "use the version of herma that made its tables, or a later one")
        }
        _ => (StoreErrorKind::Internal, ""),
    };
    let error = AtDatabase { place: place.to_owned(), next_step, source: Box::new(error) };
    StoreError::new(kind, "update its tables", error)
}

/// Whether the same call can succeed later: the server is out of reach or ended the session, or the transaction was rolled
/// back in favour of another.
pub(super) fn is_transient(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Io(error) => !is_tls(error),
        sqlx::Error::PoolTimedOut | sqlx::Error::Protocol(_) => true,
        sqlx::Error::Database(error) => {
            let code = error.code().unwrap_or_default();
            // Classes and codes: <https://www.postgresql.org/docs/current/errcodes-appendix.html>.
            code.starts_with("08")
                || matches!(
                    &*code,
                    "57P01" | "57P02" | "57P03" | "57P05" | "40001" | "40P01" | "55P03" | "53300"
                )
        }
        _ => false,
    }
}

/// The error of a server that does not answer in time.
pub(super) fn late() -> std::io::Error {
    std::io::Error::new(std::io::ErrorKind::TimedOut, "the server does not answer")
}

/// Whether the connection was made, and its encryption failed: rustls reports that as invalid data.
fn is_tls(error: &std::io::Error) -> bool {
    error.kind() == std::io::ErrorKind::InvalidData
}

pub(super) fn kind(error: &sqlx::Error) -> StoreErrorKind {
    match error {
        sqlx::Error::Io(_)
        | sqlx::Error::Tls(_)
        | sqlx::Error::Protocol(_)
        | sqlx::Error::PoolTimedOut
        | sqlx::Error::PoolClosed
        | sqlx::Error::WorkerCrashed => StoreErrorKind::Unavailable,
        sqlx::Error::ColumnDecode { .. } | sqlx::Error::Decode(_) | sqlx::Error::ColumnNotFound(_) => {
            StoreErrorKind::Corrupt
        }
        sqlx::Error::Database(error) => {
            let code = error.code().unwrap_or_default();
            match code.get(..2).unwrap_or_default() {
                // Connection, transaction, role, database, resources, locks, operator, system.
                "08" | "25" | "28" | "3D" | "40" | "53" | "55" | "57" | "58" => StoreErrorKind::Unavailable,
                "23" => StoreErrorKind::Conflict,
                _ if &*code == "42501" => StoreErrorKind::Unavailable,
                _ if matches!(&*code, "XX001" | "XX002") => StoreErrorKind::Corrupt,
                _ => StoreErrorKind::Internal,
            }
        }
        _ => StoreErrorKind::Internal,
    }
}

fn next_step(error: &sqlx::Error) -> &'static str {
    const UNVERIFIED: &str = "give the server a certificate for this host name, or name its authority with \
                              `sslrootcert=/FILE` in the URL";
    match error {
        sqlx::Error::Io(error) if is_tls(error) => UNVERIFIED,
        sqlx::Error::Tls(_) => UNVERIFIED,
        sqlx::Error::Io(_) | sqlx::Error::PoolTimedOut | sqlx::Error::Protocol(_) => {
            "start PostgreSQL, or correct the URL of the store"
        }
        sqlx::Error::Database(error) => match error.code().as_deref() {
            Some("28P01" | "28000") => "check the user, and the source of its password",
            Some("3D000") => "create the database, or correct the URL of the store",
            Some("42501") => "let the user create and change tables in this database",
            Some("53100") => "free space on the server",
            Some("25006") => "use the primary server: this one is read-only",
            Some(code) if code.starts_with("57") => "start PostgreSQL again",
            _ => "",
        },
        _ => "",
    }
}

/// A row that cannot be read: the bundles can rebuild it.
pub(super) fn unreadable<E: Into<Box<dyn Error + Send + Sync>>>(source: E) -> StoreError {
    StoreError::new(StoreErrorKind::Corrupt, "read a row", source)
}

/// A value that cannot be written.
pub(super) fn unwritable(source: serde_json::Error) -> StoreError {
    StoreError::new(StoreErrorKind::Internal, "write a row", source)
}
