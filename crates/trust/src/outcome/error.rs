//! Why an outcome was not recorded.

use std::io;

use herma_core::{RunId, Timestamp};
use herma_git::GitError;

use crate::chain::TrustError;

/// The outcome could not be recorded.
#[derive(Debug, thiserror::Error)]
pub enum OutcomeError {
    /// The run asks for none.
    #[error("run {0} asks for no outcome: nothing of it landed in a target")]
    NotRequired(RunId),
    /// There is one already.
    #[error("run {0} was already {1}; an outcome is final")]
    Final(RunId, &'static str),
    /// There is one that does not count.
    #[error("run {0} has an outcome that does not count: {1}; nothing was done")]
    Void(RunId, String),
    /// It comes too late to be accepted.
    #[error(
        "missing_outcome: run {0} had to be accepted until {1}; it proves nothing and can only be rejected"
    )]
    TooLate(RunId, Timestamp),
    /// The ref does not point to the landed commit any more.
    #[error("`{reference}` points to {now}: somebody moved it, so nothing was done")]
    Moved {
        /// The ref.
        reference: String,
        /// Where it points to.
        now: String,
    },
    /// The landed branch is gone, so there is nothing to accept.
    #[error("what run {0} landed is not there any more, so it cannot be accepted: {1}")]
    Gone(RunId, String),
    /// The branch is checked out.
    #[error(
        "`{0}` is checked out in the target, so nothing was deleted: switch to another branch there, then reject again"
    )]
    CheckedOut(String),
    /// The bundle does not verify, so the landed content is unknown.
    #[error("the bundle of run {0} does not hold, so it cannot be accepted or rejected: {1}")]
    Broken(RunId, String),
    /// The kept landing does not match the evidence.
    #[error(
        "what was remembered of run {0} is not what its bundle says: {1} differs; nothing was done, and nothing in the target was touched"
    )]
    Mismatch(RunId, &'static str),
    /// The bundle cannot be read.
    #[error("the bundle of run {0} cannot be read: {1}")]
    Bundle(RunId, String),
    /// The kept landing is missing, so the result cannot be removed.
    #[error("what run {0} landed cannot be taken back: {1}")]
    Unknown(RunId, String),
    /// git could not do it.
    #[error(transparent)]
    Git(#[from] GitError),
    /// The trust chain cannot be used.
    #[error(transparent)]
    Trust(#[from] TrustError),
    /// A file could not be written.
    #[error("the outcome could not be written: {0}")]
    Write(#[from] io::Error),
}
