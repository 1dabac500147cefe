//! Errors about admissions.

use std::io;
use std::path::PathBuf;

use herma_core::admission::{AdmissionId, Incomplete};

use crate::chain::TrustError;

/// An admission cannot be read, written, signed or revoked.
#[derive(Debug, thiserror::Error)]
pub enum AdmissionError {
    /// A file could not be read or written.
    #[error("{} could not be {doing}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The operation that failed.
        doing: &'static str,
        /// The error of the system.
        source: io::Error,
    },
    /// A file is not an admission.
    #[error("{}: {why}", file.display())]
    Bad {
        /// The file.
        file: PathBuf,
        /// The problem and its place.
        why: String,
    },
    /// A draft has a value that an admission must not have.
    #[error("the admission of {id} cannot be written: {why}")]
    Refused {
        /// Its subject.
        id: AdmissionId,
        /// Which field, and why.
        why: String,
    },
    /// A file is about another subject than its name.
    #[error("{} is about {id}, which is not what its name says; move it away", file.display())]
    Other {
        /// The file.
        file: PathBuf,
        /// Its subject.
        id: AdmissionId,
    },
    /// There is no such file.
    #[error("there is no file {}", .0.display())]
    NoFile(PathBuf),
    /// There is no such admission.
    #[error("there is no admission of {0}")]
    NotThere(AdmissionId),
    /// A signed admission is never changed.
    #[error(
        "the admission of {0} is signed and stays as it is; revoke it first, then change it and have it signed again"
    )]
    IsSigned(AdmissionId),
    /// There is nothing to take back.
    #[error("the admission of {0} is not signed: there is nothing to revoke")]
    NotSigned(AdmissionId),
    /// Not everything is there.
    #[error("the admission of {id} cannot be signed: {lacks}")]
    Incomplete {
        /// Its subject.
        id: AdmissionId,
        /// The missing fields.
        lacks: Incomplete,
    },
    /// A signature that is older than the revocation would count for nothing.
    #[error("the admission of {0} was revoked later than this machine's clock says it is now; set the clock")]
    Clock(AdmissionId),
    /// The trust chain cannot be used.
    #[error(transparent)]
    Trust(#[from] TrustError),
    /// The record has no canonical form.
    #[error("the admission's record cannot be signed: {0}")]
    Record(#[from] serde_json::Error),
}
