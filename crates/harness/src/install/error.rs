//! Why an agent could not be installed.

use std::io;

use herma_destination::{StartError, ToolError};
use herma_model::engine::EngineName;

use crate::admissions::AdmissionError;

/// An agent could not be installed.
#[derive(Debug, thiserror::Error)]
pub enum InstallError {
    /// There is nothing to install for it.
    #[error("the engine `{0}` is installed from no registry")]
    NoPackage(EngineName),
    /// A range or a tag names no one version.
    #[error("`{0}` is not one exact version such as 1.2.3")]
    NotExact(String),
    /// The program that fetches is not there, or says nothing of its configuration.
    #[error(transparent)]
    Tool(#[from] ToolError),
    /// The operator's registry is none that can be reached from inside.
    #[error("npm's configuration names the registry `{0}`, which is not an https address without a user")]
    Registry(String),
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
        package: &'static str,
        /// What was said of it.
        why: String,
    },
    /// What was fetched is not what was asked for.
    #[error("what was fetched holds no program of `{package}` {version} for this machine")]
    NotThere {
        /// The package.
        package: &'static str,
        /// The version.
        version: String,
    },
    /// Its admission could not be written.
    #[error(transparent)]
    Admission(AdmissionError),
    /// The system said no.
    #[error("{what}: {source}")]
    Io {
        /// What it was about.
        what: &'static str,
        /// What it said.
        source: io::Error,
    },
}

impl InstallError {
    pub(super) fn io(what: &'static str, source: io::Error) -> Self {
        Self::Io { what, source }
    }

    /// What a person can do about it.
    #[must_use]
    pub fn next_step(&self) -> &'static str {
        match self {
            Self::NoPackage(_) => "`herma admit engine NAME --program FILE` admits a program that you have",
            Self::NotExact(_) => "name one version with --version, or leave it out",
            Self::Tool(_) => {
                "install npm so that a directory of PATH holds it, and see what `npm config get registry` says"
            }
            Self::Registry(_) => "`npm config set registry https://HOST/` names another one",
            Self::NotFetched { .. } => {
                "see whether npm reaches its registry; --own-network lets it lie in a network of your own"
            }
            Self::NotThere { .. } => "ask for another version with --version",
            Self::Admission(AdmissionError::IsSigned(_)) => {
                "revoke its admission first with `herma admissions revoke engine NAME --reason TEXT`"
            }
            Self::Start(_) | Self::Way(_) | Self::Admission(_) | Self::Io { .. } => {
                "see what `herma doctor` says, and whether herma's home can be written"
            }
        }
    }
}
