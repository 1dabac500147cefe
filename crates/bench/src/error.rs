//! Errors of a measurement.

use std::error::Error;
use std::io;
use std::time::Duration;

use herma_destination::probe::ProbeError;
use herma_destination::tool::ToolError;
use herma_destination::{StartError, Unready};

/// Something could not be measured.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    /// The system refused.
    #[error("{what}: {source}")]
    Io {
        /// The operation that failed.
        what: String,
        /// The error of the system.
        source: io::Error,
    },
    /// A process did not start.
    #[error(transparent)]
    Start(#[from] StartError),
    /// A program did not end as it should.
    #[error(transparent)]
    Tool(#[from] ToolError),
    /// The sandbox is not ready.
    #[error(transparent)]
    Unready(#[from] Unready),
    /// The probes could not be run.
    #[error(transparent)]
    Probe(#[from] ProbeError),
    /// A command in the sandbox failed.
    #[error("in the sandbox: {0}")]
    Sandbox(String),
    /// A process started and gave up, or never answered.
    #[error("it did not come up: {0}")]
    NotUp(String),
    /// It took longer than it may.
    #[error("timed out after {} seconds", .0.as_secs())]
    TooLong(Duration),
    /// An answer is not the one that the upstream gives.
    #[error("it answered with status {status}: {said}")]
    Answer {
        /// The status.
        status: u16,
        /// The beginning of the body.
        said: String,
    },
    /// A file of a bundle or of a home is not what it should be.
    #[error("{what}: {source}")]
    Bundle {
        /// The operation that failed.
        what: &'static str,
        /// The error.
        source: Box<dyn Error + Send + Sync>,
    },
    /// A bundle that herma made does not verify.
    #[error("a bundle of the benchmark does not verify")]
    Unverified,
    /// Somebody wants this process to end.
    #[error("the measurement was interrupted; everything that it had started was ended")]
    Interrupted,
    /// A stream ended before its last event.
    #[error("a stream ended before its end: {0}")]
    Cut(String),
}

impl BenchError {
    /// Adds what was being done.
    pub(crate) fn io(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        move |source| Self::Io { what, source }
    }

    /// Adds what was being done with a bundle or a home.
    pub(crate) fn bundle<E: Into<Box<dyn Error + Send + Sync>>>(
        what: &'static str,
    ) -> impl FnOnce(E) -> Self {
        move |source| Self::Bundle { what, source: source.into() }
    }

    /// The same for what hyper says.
    pub(crate) fn http(what: &'static str) -> impl FnOnce(hyper::Error) -> Self {
        move |error| Self::Io { what: what.to_owned(), source: io::Error::other(error) }
    }
}
