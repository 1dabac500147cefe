//! The status of a run: pass, fail or blocked.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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
