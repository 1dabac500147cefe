//! Why a run could not be started, or had to stop before its last step.

use std::io;

use herma_core::store::StoreError;
use herma_destination::StartError;
use herma_engines::EngineError;
use herma_evidence::{AttestError, WriteError};
use herma_git::GitError;
use herma_trust::TrustError;

use crate::policy_files::PolicyError;

/// Why there is no run, or one that could not be closed.
#[derive(Debug, thiserror::Error)]
pub enum OrderError {
    /// The contract cannot be run as it is.
    #[error("the contract cannot be run: {0}")]
    Contract(String),
    /// The engine cannot be used.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The policies for tool calls cannot be used.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// The home or the bundle cannot be written: the run has no trace but this message.
    #[error("artifact_write_failure: {0}")]
    Write(String),
    /// The store does not work.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// There is no randomness to name a run with.
    #[error("the system gives no random bytes: {0}")]
    Random(String),
    /// Something else inside herma.
    #[error("{0}")]
    Internal(String),
}

impl OrderError {
    #[allow(clippy::needless_pass_by_value, reason = "it is handed to map_err")]
    pub(crate) fn contract(error: serde_json::Error) -> Self {
        Self::Contract(error.to_string())
    }

    #[allow(clippy::needless_pass_by_value, reason = "it is handed to map_err")]
    pub(crate) fn home(error: io::Error) -> Self {
        Self::Write(format!("herma's home cannot be written: {error}"))
    }
}

impl From<WriteError> for OrderError {
    fn from(error: WriteError) -> Self {
        Self::Write(error.to_string())
    }
}

impl From<AttestError> for OrderError {
    fn from(error: AttestError) -> Self {
        Self::Write(error.to_string())
    }
}

impl From<Stop> for OrderError {
    fn from(stop: Stop) -> Self {
        match stop {
            Stop::Blocked => Self::Internal("the run was blocked before it began".to_owned()),
            Stop::Write(what) => Self::Write(what),
            Stop::Interrupted(why) => Self::Internal(why),
            Stop::Destination(what) | Stop::Internal(what) => Self::Internal(what),
        }
    }
}

/// Why a run goes no further. It is closed all the same.
#[derive(Debug)]
pub(crate) enum Stop {
    /// A gate does not hold; the step's result says which.
    Blocked,
    /// The run was cancelled, or nothing waits for it any more.
    Interrupted(String),
    /// A file of the bundle or of the home could not be written.
    Write(String),
    /// The destination failed under the run, as when its daemon dies or somebody kills what makes the walls.
    Destination(String),
    /// Something went wrong inside herma.
    Internal(String),
}

impl Stop {
    pub(crate) fn panicked(doing: &str) -> Self {
        Self::Internal(format!("a thread panicked while {doing}"))
    }
}

impl From<WriteError> for Stop {
    fn from(error: WriteError) -> Self {
        Self::Write(error.to_string())
    }
}

impl From<GitError> for Stop {
    fn from(error: GitError) -> Self {
        if error.is_write_failure() {
            Self::Write(error.to_string())
        } else {
            Self::Internal(error.to_string())
        }
    }
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Self {
        if is_write_failure(&error) {
            Self::Write(error.to_string())
        } else {
            Self::Internal(error.to_string())
        }
    }
}

impl From<TrustError> for Stop {
    fn from(error: TrustError) -> Self {
        match error {
            TrustError::Io { source, .. } if is_write_failure(&source) => Self::Write(source.to_string()),
            error => Self::Internal(error.to_string()),
        }
    }
}

impl From<StoreError> for Stop {
    fn from(error: StoreError) -> Self {
        Self::Internal(error.to_string())
    }
}

impl From<StartError> for Stop {
    fn from(error: StartError) -> Self {
        match error {
            StartError::Unready(_) | StartError::Isolation { .. } | StartError::Slow { .. } => {
                Self::Destination(error.to_string())
            }
            StartError::BadJob(_) | StartError::Io { .. } => Self::Internal(error.to_string()),
        }
    }
}

impl From<EngineError> for Stop {
    fn from(error: EngineError) -> Self {
        match &error {
            EngineError::Write { source, .. } if is_write_failure(source) => Self::Write(error.to_string()),
            _ => Self::Internal(error.to_string()),
        }
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
    fn a_destination_that_fails_is_no_error_of_herma() {
        let walls = StartError::Isolation { program: "Docker".to_owned(), said: "it was killed".to_owned() };
        assert!(matches!(Stop::from(walls), Stop::Destination(why) if why.contains("it was killed")));
        let slow = StartError::Slow {
            program: "bubblewrap".to_owned(),
            within: Duration::from_mins(1),
            attempts: 3,
        };
        assert!(matches!(Stop::from(slow), Stop::Destination(why) if why
            == "bubblewrap did not start within 60 s (3 attempts; is the machine under load?)"));
        let io = StartError::Io { what: "cannot".to_owned(), source: io::Error::other("no") };
        assert!(matches!(Stop::from(io), Stop::Internal(_)));
    }
}
