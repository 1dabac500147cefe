//! Why an agent could not be installed.

use std::io;

use herma_core::engine::EngineName;
use herma_destination::{StartError, ToolError};
use herma_engines::Origin;

use herma_trust::AdmissionError;

/// An agent could not be installed.
#[derive(Debug, thiserror::Error)]
pub enum InstallError {
    /// There is nothing to install for it.
    #[error("the engine `{engine}` is installed from no registry")]
    NoPackage {
        /// The engine.
        engine: EngineName,
        /// The setting that makes it installable.
        instead: Option<&'static str>,
    },
    /// A range or a tag names no one version.
    #[error("`{0}` is not one exact version such as 1.2.3")]
    NotExact(String),
    /// The program that fetches is missing, or does not report its configuration.
    #[error("{source}")]
    Tool {
        /// The registry that it is for.
        origin: Origin,
        /// The error of the tool.
        source: ToolError,
    },
    /// The operator's registry is none that can be reached from inside.
    #[error(
        "the configuration for {} names the registry `{registry}`, which is not an https address without a user",
        origin.name()
    )]
    Registry {
        /// The registry that it is for.
        origin: Origin,
        /// The configured URL, without credentials.
        registry: String,
    },
    /// No interpreter of the machine is one that the package runs with.
    #[error("there is no Python {} with pip on this machine", pythons.join(" or "))]
    NoPython {
        /// The versions that would do.
        pythons: &'static [&'static str],
    },
    /// The sandbox could not start it.
    #[error(transparent)]
    Start(#[from] StartError),
    /// The proxy that leads to the registry could not start.
    #[error("the way to the registry could not be opened: {0}")]
    Way(String),
    /// It was not fetched.
    #[error("`{package}` was not fetched: {why}")]
    NotFetched {
        /// The package.
        package: String,
        /// Its registry.
        origin: Origin,
        /// The reason.
        why: String,
    },
    /// It was cancelled.
    #[error("the installation was cancelled; nothing of it is left")]
    Cancelled,
    /// The fetched package is not the requested one.
    #[error(
        "what was fetched is not `{package}` {version}, or holds no program `{program}` for this machine"
    )]
    NotThere {
        /// The package.
        package: String,
        /// The version.
        version: String,
        /// The expected path of its program.
        program: String,
    },
    /// Its admission could not be written.
    #[error(transparent)]
    Admission(AdmissionError),
    /// An operation of the system failed.
    #[error("{what}: {source}")]
    Io {
        /// The file or directory.
        what: &'static str,
        /// The error of the system.
        source: io::Error,
    },
}

impl InstallError {
    pub(crate) fn io(what: &'static str, source: io::Error) -> Self {
        Self::Io { what, source }
    }

    /// The next step for the user.
    #[must_use]
    pub fn next_step(&self) -> &'static str {
        match self {
            Self::NoPackage { instead, .. } => {
                instead.unwrap_or("`herma admit engine NAME --program FILE` admits a program that you have")
            }
            Self::NotExact(_) => "name one version with --pin, or leave it out",
            Self::Tool { origin: Origin::Npm, .. } => {
                "install npm so that a directory of PATH holds it, and see what `npm config get registry` says"
            }
            Self::Tool { origin: Origin::PyPi { .. }, .. } => "see what `python3 -m pip config list` says",
            Self::Registry { origin: Origin::Npm, .. } => {
                "`npm config set registry https://HOST/` names another one"
            }
            Self::Registry { origin: Origin::PyPi { .. }, .. } => {
                "`python3 -m pip config set global.index-url https://HOST/simple` names another one"
            }
            Self::NoPython { .. } => "install one with its pip so that a directory of PATH holds it",
            Self::NotFetched { origin: Origin::Npm, .. } => {
                "see whether npm reaches its registry; --own-network lets it lie in a network of your own"
            }
            Self::NotFetched { origin: Origin::PyPi { .. }, .. } => {
                "see whether pip reaches its registry; --own-network lets it lie in a network of your own"
            }
            Self::NotThere { .. } => {
                "ask for another version with --pin, or fix `program` where settings.yaml names it"
            }
            Self::Admission(AdmissionError::IsSigned(_)) => {
                "revoke its admission first with `herma admissions revoke engine NAME --reason TEXT`"
            }
            Self::Cancelled => "run the command again",
            Self::Start(_) | Self::Way(_) | Self::Admission(_) | Self::Io { .. } => {
                "see what `herma doctor` says, and whether herma's home can be written"
            }
        }
    }
}
