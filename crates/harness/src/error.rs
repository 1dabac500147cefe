//! Why a run could not be started, or had to stop before its last step.

use std::io;

use herma_core::store::StoreError;
use herma_destination::StartError;
use herma_engines::EngineError;
use herma_evidence::{AttestError, WriteError};
use herma_git::GitError;
use herma_trust::TrustError;

use crate::policy_files::PolicyError;

/// The error that a stop or a failed order was caused by. Messages and logs decide what of it to show.
pub(crate) type Cause = Box<dyn std::error::Error + Send + Sync>;

/// Why there is no run, or one that could not be closed.
#[derive(Debug, thiserror::Error)]
pub enum OrderError {
    /// The contract cannot be serialised.
    #[error("the contract cannot be run: {0}")]
    Contract(#[source] serde_json::Error),
    /// The engine cannot be used.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The policies for tool calls cannot be used.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// The home or the bundle cannot be written: the run leaves no trace but this message.
    #[error("artifact_write_failure: {0}")]
    Write(#[source] Cause),
    /// The store does not work.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The system has no random bytes for the id of a run.
    #[error("the system gives no random bytes: {0}")]
    Random(getrandom::Error),
    /// Another error inside herma.
    #[error("{0}")]
    Internal(#[source] Cause),
}

/// herma's home cannot be written.
#[derive(Debug, thiserror::Error)]
#[error("herma's home cannot be written: {0}")]
struct HomeWriteError(#[source] io::Error);

impl OrderError {
    pub(crate) fn home(error: io::Error) -> Self {
        Self::Write(HomeWriteError(error).into())
    }

    pub(crate) fn internal(cause: impl Into<Cause>) -> Self {
        Self::Internal(cause.into())
    }
}

impl From<WriteError> for OrderError {
    fn from(error: WriteError) -> Self {
        Self::Write(error.into())
    }
}

impl From<AttestError> for OrderError {
    fn from(error: AttestError) -> Self {
        Self::Write(error.into())
    }
}

impl From<Stop> for OrderError {
    fn from(stop: Stop) -> Self {
        match stop {
            Stop::Blocked => Self::internal("the run was blocked before it began"),
            Stop::Write(cause) => Self::Write(cause),
            Stop::Interrupted(reason) => Self::internal(reason),
            Stop::Destination(error) => Self::internal(error),
            Stop::Internal(cause) => Self::Internal(cause),
        }
    }
}

/// Why a run stops before its last step. It is closed all the same.
#[derive(Debug)]
pub(crate) enum Stop {
    /// A gate failed; the step's result names it.
    Blocked,
    /// The run was cancelled, or its result is not needed any more.
    Interrupted(String),
    /// A file of the bundle or of the home could not be written.
    Write(Cause),
    /// The destination failed under the run, as when its daemon dies or the process that confines the agent is killed.
    Destination(StartError),
    /// An error inside herma.
    Internal(Cause),
}

impl Stop {
    pub(crate) fn write(cause: impl Into<Cause>) -> Self {
        Self::Write(cause.into())
    }

    pub(crate) fn internal(cause: impl Into<Cause>) -> Self {
        Self::Internal(cause.into())
    }

    /// The kind of stop in log records. The text of an error is for the report, which is redacted.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Blocked => "blocked",
            Self::Interrupted(_) => "interrupted",
            Self::Write(_) => "write_failure",
            Self::Destination(_) => "destination_failed",
            Self::Internal(_) => "internal_error",
        }
    }

    pub(crate) fn panicked(doing: &str) -> Self {
        Self::internal(format!("a thread panicked while {doing}"))
    }

    fn io(error: impl Into<Cause>, is_write_failure: bool) -> Self {
        if is_write_failure { Self::write(error) } else { Self::internal(error) }
    }
}

impl From<WriteError> for Stop {
    fn from(error: WriteError) -> Self {
        Self::write(error)
    }
}

impl From<GitError> for Stop {
    fn from(error: GitError) -> Self {
        let is_write_failure = error.is_write_failure();
        Self::io(error, is_write_failure)
    }
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Self {
        let is_write_failure = is_write_failure(&error);
        Self::io(error, is_write_failure)
    }
}

impl From<TrustError> for Stop {
    fn from(error: TrustError) -> Self {
        match error {
            TrustError::Io { source, .. } if is_write_failure(&source) => Self::write(source),
            error => Self::internal(error),
        }
    }
}

impl From<StoreError> for Stop {
    fn from(error: StoreError) -> Self {
        Self::internal(error)
    }
}

impl From<StartError> for Stop {
    fn from(error: StartError) -> Self {
        match error {
            StartError::Unready(_) | StartError::Isolation { .. } | StartError::Slow { .. } => {
                Self::Destination(error)
            }
            StartError::BadJob(_) | StartError::Io { .. } => Self::internal(error),
        }
    }
}

impl From<EngineError> for Stop {
    fn from(error: EngineError) -> Self {
        let is_write_failure =
            matches!(&error, EngineError::Write { source, .. } if is_write_failure(source));
        Self::io(error, is_write_failure)
    }
}

/// Whether the disk is full or may not be written.
fn is_write_failure(error: &io::Error) -> bool {
    use io::ErrorKind as K;
    matches!(error.kind(), K::StorageFull | K::QuotaExceeded | K::ReadOnlyFilesystem)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_failed_destination_is_not_an_internal_error() {
        let killed = StartError::Isolation { program: "Docker".to_owned(), said: "it was killed".to_owned() };
        assert!(
            matches!(Stop::from(killed), Stop::Destination(error) if error.to_string().contains("it was killed"))
        );
        let slow = StartError::Slow {
            program: "bubblewrap".to_owned(),
            within: Duration::from_mins(1),
            attempts: 3,
        };
        assert!(matches!(Stop::from(slow), Stop::Destination(error) if error.to_string()
            == "bubblewrap did not start within 60 s (3 attempts; is the machine under load?)"));
        let io = StartError::Io { what: "cannot".to_owned(), source: io::Error::other("no") };
        assert!(matches!(Stop::from(io), Stop::Internal(_)));
    }

    #[test]
    fn an_error_keeps_its_source() {
        let full = || io::Error::from(io::ErrorKind::StorageFull);
        let order = OrderError::from(Stop::from(full()));
        let OrderError::Write(cause) = &order else { panic!("{order:?}") };
        assert!(cause.downcast_ref::<io::Error>().is_some());
        let home = OrderError::home(full());
        let source = std::error::Error::source(&home).and_then(std::error::Error::source);
        let io = source.and_then(|source| source.downcast_ref::<io::Error>());
        assert!(io.is_some(), "{home:?}");
    }
}
