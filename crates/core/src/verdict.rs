//! The verdict of a run.

use crate::blocker::{Blocker, BlockerRecord};
pub use crate::status::Status;

/// The verdict of a run: its status follows from its blockers, so that no pass can carry one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    blockers: Vec<BlockerRecord>,
}

impl Verdict {
    /// The verdict that these blockers lead to.
    #[must_use]
    pub fn new(blockers: Vec<BlockerRecord>) -> Self {
        Self { blockers }
    }

    /// A pass without blockers; a fail where anything was found wrong; else blocked. An interrupted run is always
    /// blocked: what was found before the interruption is listed but was not checked to the end.
    #[must_use]
    pub fn status(&self) -> Status {
        let interrupted = self.blockers.iter().any(|b| b.blocker == Blocker::Interrupted);
        match self.blockers.iter().map(|b| b.blocker.status()).min() {
            None => Status::Pass,
            Some(_) if interrupted => Status::Blocked,
            Some(worst) => worst,
        }
    }

    /// Why it is not a pass; empty for a pass.
    #[must_use]
    pub fn blockers(&self) -> &[BlockerRecord] {
        &self.blockers
    }
}
