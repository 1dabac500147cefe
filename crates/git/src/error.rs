//! Errors of git and of work tree files.

use std::io;
use std::path::PathBuf;

use herma_destination::tool::ToolError;

use crate::scrub;

/// git's messages when it cannot write.
const WRITE_FAILURES: [&str; 6] = [
    "No space left on device",
    "Disk quota exceeded",
    "Read-only file system",
    "couldn't write",
    "unable to write",
    "write error",
];

/// Messages of git while another git command runs: it holds a lock, or has removed objects that no ref named yet.
const ANOTHER_GIT: [&str; 3] = ["File exists", "nonexistent object", "is not a valid object"];

/// An error of git or of work tree files. Reports contain its message, so it has no absolute path: neither of a
/// file nor in git's own text.
#[derive(Debug, thiserror::Error)]
pub enum GitError {
    /// git is missing or failed.
    #[error("{}", scrub::text(&.0.to_string()))]
    Tool(#[from] ToolError),
    /// A file or directory could not be read or written.
    #[error("could not {doing} {}: {cause}", scrub::path(path).display())]
    File {
        /// The operation.
        doing: &'static str,
        /// The path.
        path: PathBuf,
        /// The cause.
        cause: io::Error,
    },
    /// git's output could not be parsed.
    #[error("git answered something unexpected to `{command}`: {}", scrub::text(answer))]
    Unexpected {
        /// The command.
        command: &'static str,
        /// The output, shortened.
        answer: String,
    },
    /// Applying a patch exceeded a limit.
    #[error(
        "git needs more than {memory_mib} MiB or {cpu_seconds} s of CPU time to apply the patch, which is out of proportion to its size"
    )]
    TooCostly {
        /// The CPU time limit.
        cpu_seconds: u64,
        /// The memory limit.
        memory_mib: u64,
    },
    /// A file of the base is larger than its kind may be.
    #[error("{path} has {bytes} bytes at the base: expected at most {max_bytes}")]
    TooLarge {
        /// The file.
        path: String,
        /// Its size.
        bytes: u64,
        /// The limit.
        max_bytes: u64,
    },
    /// The directory is not the top of a git repository.
    #[error("{name} is not the top directory of a git repository: {reason}")]
    NotARepository {
        /// The name under which the contract knows it.
        name: String,
        /// The reason.
        reason: String,
    },
    /// The base revision does not exist.
    #[error("the repository has no commit `{base}`: name one that `git rev-parse` finds")]
    NoSuchBase {
        /// As in the contract.
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

    /// Whether another git command is in the way, so that a later attempt may succeed.
    pub(crate) fn is_by_another_git(&self) -> bool {
        // git tells only by its words; they are fixed by LC_ALL=C.
        matches!(self, Self::Tool(ToolError::Failed { said, .. }) if ANOTHER_GIT.iter().any(|words| said.contains(words)))
    }

    /// Whether the disk is full or read-only.
    #[must_use]
    pub fn is_write_failure(&self) -> bool {
        use io::ErrorKind as K;
        match self {
            Self::File { cause, .. } => {
                matches!(cause.kind(), K::StorageFull | K::QuotaExceeded | K::ReadOnlyFilesystem)
            }
            // Only git's text tells; LC_ALL=C fixes it.
            Self::Tool(ToolError::Failed { said, .. }) => {
                WRITE_FAILURES.iter().any(|words| said.contains(words))
            }
            _ => false,
        }
    }
}
