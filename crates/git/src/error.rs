//! What can go wrong with git and with the files of a work tree.

use std::io;
use std::path::PathBuf;

use herma_destination::tool::ToolError;

use crate::scrub;

/// What git says when it cannot write.
const WRITE_FAILURES: [&str; 6] = [
    "No space left on device",
    "Disk quota exceeded",
    "Read-only file system",
    "couldn't write",
    "unable to write",
    "write error",
];

/// What can go wrong with git and with the files of a work tree. What it says goes into reports, so it holds no
/// absolute path: not of a file, and not in the words of git.
#[derive(Debug, thiserror::Error)]
pub enum GitError {
    /// git is missing or said no.
    #[error("{}", scrub::text(&.0.to_string()))]
    Tool(#[from] ToolError),
    /// A file or directory could not be read or written.
    #[error("could not {doing} {}: {cause}", scrub::path(path).display())]
    File {
        /// What was tried.
        doing: &'static str,
        /// On what.
        path: PathBuf,
        /// Why it failed.
        cause: io::Error,
    },
    /// git answered something that herma does not understand.
    #[error("git answered something unexpected to `{command}`: {}", scrub::text(answer))]
    Unexpected {
        /// What was asked.
        command: &'static str,
        /// What came back, shortened.
        answer: String,
    },
    /// Applying a patch met a limit.
    #[error(
        "git needs more than {memory_mib} MiB or {cpu_seconds} s of CPU time to apply the patch, which is out of proportion to its size"
    )]
    TooCostly {
        /// How much CPU time it could use.
        cpu_seconds: u64,
        /// How much memory it could use.
        memory_mib: u64,
    },
    /// The directory is not the top of a git repository.
    #[error("{name} is not the top directory of a git repository: {reason}")]
    NotARepository {
        /// The name under which the contract knows it.
        name: String,
        /// Why not.
        reason: String,
    },
    /// The base revision is not there.
    #[error("the repository has no commit `{base}`: name one that `git rev-parse` finds")]
    NoSuchBase {
        /// As the contract says it.
        base: String,
    },
}

impl GitError {
    pub(crate) fn file(doing: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |cause| Self::File { doing, path, cause }
    }

    pub(crate) fn unexpected(command: &'static str, answer: &[u8]) -> Self {
        let answer = String::from_utf8_lossy(&answer[..answer.len().min(200)]).into_owned();
        Self::Unexpected { command, answer }
    }

    /// Whether the disk is full or may not be written.
    #[must_use]
    pub fn is_write_failure(&self) -> bool {
        use io::ErrorKind as K;
        match self {
            Self::File { cause, .. } => {
                matches!(cause.kind(), K::StorageFull | K::QuotaExceeded | K::ReadOnlyFilesystem)
            }
            // git tells only by its words; they are fixed by LC_ALL=C.
            Self::Tool(ToolError::Failed { said, .. }) => {
                WRITE_FAILURES.iter().any(|words| said.contains(words))
            }
            _ => false,
        }
    }
}
