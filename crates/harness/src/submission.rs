//! A run before its first step and after its last.

use std::path::PathBuf;
use std::sync::Arc;

use herma_core::{CancellationToken, Report, RunId, Timestamp};
use herma_evidence::RunFeed;

use crate::child_queue::HandedFile;
use crate::error::{Cause, OrderError};
use crate::installation::Installation;
use crate::order::{Occasion, Order};
use crate::progress::Progress;

/// A run before its first step: its name, its cancellation token, and the feed of its updates.
#[derive(Clone, Debug)]
pub(crate) struct Submission {
    pub(crate) id: RunId,
    pub(crate) at: Timestamp,
    pub(crate) cancellation: CancellationToken,
    pub(crate) feed: Arc<RunFeed>,
}

impl Submission {
    /// Names a run that is cancelled with `parent`, or alone.
    pub(crate) fn new(installation: &Installation, parent: &CancellationToken) -> Result<Self, OrderError> {
        let mut entropy = [0; 10];
        getrandom::fill(&mut entropy).map_err(OrderError::Random)?;
        let at = installation.clock.now();
        let (cancellation, feed) = (parent.child(), Arc::default());
        Ok(Self { id: RunId::new(at, entropy), at, cancellation, feed })
    }
}

/// A run that has ended.
#[derive(Debug)]
pub struct Finished {
    /// The report.
    pub report: Report,
    /// The directory of the evidence.
    pub bundle: PathBuf,
    /// The error inside herma that ended it early, if one did.
    pub internal_error: Option<Cause>,
    /// The result of a child run, for its parent.
    pub(crate) handed: Option<Vec<HandedFile>>,
}

/// Runs a submission to its end. A run gets it to run its children with.
pub(crate) type RunSubmission =
    fn(&Installation, &Order, Occasion<'_>, &Submission, &dyn Progress) -> Result<Finished, OrderError>;
