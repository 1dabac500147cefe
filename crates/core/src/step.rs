//! The steps of a run. Each is written to `trace.jsonl` before it is taken.

use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A step of a run, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// The run exists: its directory, its lock, its first event.
    Start,
    /// The gates without effects.
    Gates,
    /// The gates with effects, inside the destination.
    Probe,
    /// The workspace is taken into use. It was made while the confinement probes ran.
    Workspace,
    /// The engine runs.
    Engine,
    /// The workspace is walked and hashed.
    Collect,
    /// Paths and actions are judged, the patch is written.
    Check,
    /// The verification commands run.
    Verify,
    /// The target is compared with what it was before.
    Witness,
    /// A result that passed every check becomes one new branch with one commit.
    Land,
    /// The verdict is drawn and the report written.
    Report,
    /// The bundle is signed.
    Attest,
    /// The store learns the verdict and the workspace is cleaned.
    Close,
}

impl Step {
    /// Every step, in order.
    pub const ALL: [Self; 13] = [
        Self::Start,
        Self::Gates,
        Self::Probe,
        Self::Workspace,
        Self::Engine,
        Self::Collect,
        Self::Check,
        Self::Verify,
        Self::Witness,
        Self::Land,
        Self::Report,
        Self::Attest,
        Self::Close,
    ];

    /// The name as it is written in files and on the screen.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Gates => "gates",
            Self::Probe => "probe",
            Self::Workspace => "workspace",
            Self::Engine => "engine",
            Self::Collect => "collect",
            Self::Check => "check",
            Self::Verify => "verify",
            Self::Witness => "witness",
            Self::Land => "land",
            Self::Report => "report",
            Self::Attest => "attest",
            Self::Close => "close",
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Step {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|s| s.as_str() == text).ok_or_else(|| format!("`{text}` is not a step"))
    }
}

/// One line of `trace.jsonl`: this step is about to be taken.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TraceLine {
    /// When it was written.
    pub ts: Timestamp,
    /// Which step is about to be taken.
    pub step: Step,
}
