//! Why a set-up stopped, and how it continues.

use std::io;
use std::path::PathBuf;

use herma_api::{AdHocError, EngineRequestError, ModelListError, RouterProbeError};
use herma_core::cancellation::CancelReason;
use herma_harness::{DefaultsError, OpenError, OrderError};
use herma_install::InstallError;
use herma_ladder::ProveError;
use herma_router::config::BadConfig;
use herma_trust::{AdmissionError, ApproverError};

use crate::person::Unanswered;

/// A set-up stopped. Finished steps stay; the same command continues.
#[derive(Debug, thiserror::Error)]
pub enum QuickstartError {
    /// The installation cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// Something that the machine must have is missing, or a precondition does not hold.
    #[error("{what}")]
    Missing {
        /// The problem.
        what: String,
        /// The next step.
        next_step: String,
    },
    /// A flag, a file or an answer cannot be used.
    #[error("{what}")]
    BadChoice {
        /// The problem.
        what: String,
        /// The next step.
        next_step: String,
    },
    /// A question has no answer.
    #[error(transparent)]
    Unanswered(#[from] Unanswered),
    /// herma has no such engine.
    #[error(transparent)]
    Engine(#[from] EngineRequestError),
    /// The agent could not be installed.
    #[error(transparent)]
    Install(#[from] InstallError),
    /// The approver could not be made or used.
    #[error(transparent)]
    Approver(#[from] ApproverError),
    /// An admission could not be written or signed.
    #[error(transparent)]
    Admission(#[from] AdmissionError),
    /// The router's configuration cannot be used.
    #[error(transparent)]
    Router(#[from] BadConfig),
    /// The models of the provider cannot be listed.
    #[error(transparent)]
    ModelList(#[from] ModelListError),
    /// The model could not be asked.
    #[error(transparent)]
    Probe(#[from] RouterProbeError),
    /// A stage could not be tried.
    #[error(transparent)]
    Prove(#[from] ProveError),
    /// The repository could not be tried.
    #[error(transparent)]
    Order(#[from] OrderError),
    /// The defaults of the repository cannot be read or kept.
    #[error(transparent)]
    Defaults(#[from] DefaultsError),
    /// The repository's own files or tests do not make a contract.
    #[error(transparent)]
    AdHoc(#[from] AdHocError),
    /// A signal ended it.
    #[error("{0}: the set-up stopped between two steps; nothing is half done")]
    Cancelled(CancelReason),
    /// A file cannot be read or written.
    #[error("{} cannot be {doing}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The attempted operation.
        doing: &'static str,
        /// The error of the system.
        source: io::Error,
    },
}

impl QuickstartError {
    pub(crate) fn missing(what: impl Into<String>, next_step: impl Into<String>) -> Self {
        Self::Missing { what: what.into(), next_step: next_step.into() }
    }

    pub(crate) fn bad(what: impl Into<String>, next_step: impl Into<String>) -> Self {
        Self::BadChoice { what: what.into(), next_step: next_step.into() }
    }
}
