//! What a run came to.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::blocker::{Blocker, BlockerRecord};

/// Whether a run is a pass. The order is from best to worst for exit codes and comparisons only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Every gate held, every check passed, all evidence is there.
    Pass,
    /// Something was checked and found wrong.
    Fail,
    /// Something could not be started or could not be checked.
    Blocked,
}

impl Status {
    /// The status as it is written in files and on the screen.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Fail => "fail",
            Self::Blocked => "blocked",
        }
    }

    /// The exit code of `herma run`.
    #[must_use]
    pub fn exit_code(self) -> u8 {
        match self {
            Self::Pass => 0,
            Self::Fail => 1,
            Self::Blocked => 3,
        }
    }
}

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
