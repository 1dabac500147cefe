//! Why an environment could not be built.

use std::io;

use herma_core::RepoPath;
use herma_core::visible::visible_line;
use herma_destination::{Exit, LimitName, StartError};
use herma_git::GitError;

use crate::egress_record::EgressRecord;
use crate::layers::{LayerKind, TreeError};

/// The reason of the egress proxy for an address that is not public.
const PRIVATE_ADDRESS: &str = "private_address";
/// How many changed files a message names.
const MAX_NAMED: usize = 5;

/// An environment could not be built.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// A command failed.
    #[error("{0}")]
    Command(Box<CommandFailure>),
    /// Commands changed files that git tracks.
    #[error("the commands changed tracked files: {}; an environment leaves them as they are", named(.0))]
    TrackedFilesChanged(Vec<RepoPath>),
    /// The build was cancelled.
    #[error("the build was cancelled")]
    Cancelled,
    /// A command could not be started.
    #[error("a command of the environment could not be started: {0}")]
    Start(#[from] StartError),
    /// The base could not be read.
    #[error(transparent)]
    Git(#[from] GitError),
    /// The egress proxy could not be started.
    #[error("the proxy to the registries could not be started: {0}")]
    Proxy(String),
    /// The key could not be computed.
    #[error("the key of the environment could not be computed: {0}")]
    Key(#[from] serde_json::Error),
    /// The files that the commands left could not be captured, or are more than a layer can have.
    #[error("the environment cannot be kept: {0}")]
    Tree(#[source] TreeError),
    /// A file could not be read or written.
    #[error("{0}: {1}")]
    Io(&'static str, #[source] io::Error),
}

impl From<io::Error> for BuildError {
    fn from(error: io::Error) -> Self {
        Self::Io("a file of the environment", error)
    }
}

impl From<TreeError> for BuildError {
    fn from(error: TreeError) -> Self {
        match error {
            TreeError::Cancelled => Self::Cancelled,
            TreeError::Io(error) => Self::Io("a file that the commands of the environment left", error),
            other => Self::Tree(other),
        }
    }
}

impl BuildError {
    /// The same, with the hosts that the proxy denied.
    pub(super) fn with_denied(self, egress: &[EgressRecord]) -> Self {
        match self {
            Self::Command(mut failure) => {
                failure.egress = egress.to_vec();
                failure.denied =
                    egress.iter().filter(|record| record.is_denied()).map(EgressRecord::text).collect();
                Self::Command(failure)
            }
            other => other,
        }
    }
}

/// A command of an environment that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandFailure {
    /// Fetch or setup.
    pub kind: LayerKind,
    /// The command.
    pub command: String,
    /// How it ended.
    pub reason: FailureReason,
    /// The last lines that it printed, without secrets, and with control and invisible characters spelled out.
    pub last_lines: Vec<String>,
    /// The hosts that it was denied.
    pub denied: Vec<String>,
    /// Every decision of the proxy.
    pub egress: Vec<EgressRecord>,
}

/// How a command failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureReason {
    /// It ended by itself.
    Exited(Exit),
    /// It took too long.
    TimedOut,
    /// It exceeded a limit.
    Exceeded(LimitName),
}

impl std::fmt::Display for CommandFailure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let kind = match self.kind {
            LayerKind::Fetch => "fetch",
            LayerKind::Setup => "setup",
        };
        write!(f, "the {kind} command `{}` ", visible_line(&self.command))?;
        match self.reason {
            FailureReason::Exited(exit) => write!(f, "ended {exit}")?,
            FailureReason::TimedOut => f.write_str("took too long")?,
            FailureReason::Exceeded(limit) => write!(f, "exceeded the limit `{limit}`")?,
        }
        if !self.denied.is_empty() {
            let denied = visible_line(&self.denied.join(", "));
            let advice = if self.denied.iter().all(|host| host.contains(PRIVATE_ADDRESS)) {
                "the registry is at an address of your own network; permit it by registry in herma's settings.yaml, such as \
                 `registries: { pypi: { own_network: true } }`"
            } else {
                "add the registry to `registries`"
            };
            write!(f, "; it was denied {denied}: {advice}")?;
        }
        // Package managers print the reason first, and then where to read more.
        if let Some(line) = self.last_lines.iter().find(|line| is_error(line)).or(self.last_lines.last()) {
            write!(f, "; it said: {}", visible_line(line))?;
        }
        Ok(())
    }
}

/// Whether a line of a tool's output states an error, in the form of one of the known package managers.
fn is_error(line: &str) -> bool {
    ["error: ", "ERROR: ", "[ERROR] ", "npm error ", "fatal: "].iter().any(|start| line.starts_with(start))
}

fn named(paths: &[RepoPath]) -> String {
    let first: Vec<String> =
        paths.iter().take(MAX_NAMED).map(|path| visible_line(&path.shortened())).collect();
    let more = match paths.len().saturating_sub(MAX_NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("{}{more}", first.join(", "))
}
