//! Output of `herma accept --json`, `herma reject --json` and `herma runs --json` about outcomes.

use herma_core::approver::ApproverName;
use herma_core::outcome::Outcome;
use herma_core::report::LandingRecord;
use herma_core::signed::Signed;
use herma_core::{RepoPath, RunId, Timestamp};
use schemars::JsonSchema;
use serde::Serialize;

/// `herma accept --json` and `herma reject --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct OutcomeOutput {
    /// `herma.outcome-given/v1`.
    pub schema: &'static str,
    /// The run.
    pub run_id: RunId,
    /// The contract's name.
    pub contract_id: String,
    /// The target by its name.
    pub target: String,
    /// The branch that landed.
    pub landing: Option<LandingRecord>,
    /// The paths that the engine changed.
    pub changed_files: Vec<RepoPath>,
    /// Which of these look like tests.
    pub changed_tests: Vec<RepoPath>,
    /// Which of these decide what verification does, and are no tests.
    pub changed_verification_files: Vec<RepoPath>,
    /// The operator's outcome, as in `outcome.json`.
    pub outcome: Signed<Outcome>,
    /// The state of the branch.
    pub note: String,
}

/// The outcome of a run.
#[derive(Debug, Serialize, JsonSchema)]
pub struct OutcomeRow {
    /// Pending, accepted, rejected, missing or void.
    pub state: OutcomeWordNow,
    /// Until when it can be given, or had to be; none once it was.
    pub due: Option<Timestamp>,
    /// The operator who gave it; for a void outcome, the one it names.
    pub operator: Option<ApproverName>,
    /// When.
    pub decided_at: Option<Timestamp>,
    /// Why.
    pub reason: Option<String>,
    /// The content of a void outcome.
    pub claims: Option<OutcomeWordNow>,
    /// Why it is void, such as an operator who is no approver.
    pub void: Option<String>,
}

/// The state of an outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OutcomeWordNow {
    /// It can be given.
    Pending,
    /// The result was taken.
    Accepted,
    /// The result was not taken.
    Rejected,
    /// It was not given in time: the run proves nothing.
    MissingOutcome,
    /// A file is there that does not count as an outcome: the run proves nothing.
    Void,
}

impl OutcomeWordNow {
    /// The name as it is written in files and on the screen.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Accepted => "accepted",
            Self::Rejected => "rejected",
            Self::MissingOutcome => "missing_outcome",
            Self::Void => "void",
        }
    }
}
