//! Errors about egress lists, grants and proposals.

use std::io;

use herma_egress::grants::BadGrant;
use herma_egress::rules::BadRule;

use crate::chain::TrustError;

/// An error about the installation's egress. Files are named relative to herma's home: evidence must not
/// say where that is.
#[derive(Debug, thiserror::Error)]
pub enum EgressError {
    /// A file could not be read or written.
    #[error("{file} in herma's home could not be {doing}: {source}")]
    Io {
        /// The file.
        file: String,
        /// The operation that failed.
        doing: &'static str,
        /// The error of the system.
        source: io::Error,
    },
    /// A line of the list is no rule.
    #[error("{file}:{line}: {bad}")]
    Line {
        /// The file.
        file: &'static str,
        /// The line, from 1.
        line: usize,
        /// The problem.
        #[source]
        bad: BadRule,
    },
    /// The list has more entries than anybody reads.
    #[error("the list would have more than {0} entries; use `*.domain` where hosts belong together")]
    TooMany(usize),
    /// The grant is none.
    #[error(transparent)]
    Grant(#[from] BadGrant),
    /// There is no such grant, or several.
    #[error("there is no grant `{0}`, or more than one; `herma egress show` lists them")]
    NoGrant(String),
    /// The run has left no proposal.
    #[error("{0} has left no proposal: only a run with `--egress learn` that reached a host leaves one")]
    NoProposal(String),
    /// A host is not part of the proposal.
    #[error("`{host}` is not among what the run learned; `herma egress learned` lists it")]
    NotLearned {
        /// The host that was named.
        host: String,
    },
    /// The trust chain cannot be used.
    #[error(transparent)]
    Trust(#[from] TrustError),
    /// A record could not be signed or written as JSON.
    #[error("the record cannot be written: {0}")]
    Record(#[from] serde_json::Error),
    /// The list must be signed by another approver.
    #[error("the list has to be signed by `{wanted}`, and `{by}` is somebody else")]
    OtherSigner {
        /// The approver whose signature counts.
        wanted: String,
        /// The approver who tried to sign.
        by: String,
    },
    /// No signature is required.
    #[error("settings.yaml names nobody in `egress_signed_by`, so that the list needs no signature")]
    NotRequired,
}
