//! The record of one health check: every check by name, and one status from all of them.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::digest::Digest;
use crate::id::RunId;
use crate::reference::Reference;
use crate::signed::Signable;

/// The record of one health check; it is what `herma health --json` prints.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HealthReport {
    /// `herma.health/v1`.
    pub schema: HealthSchema,
    /// The record's name: a version 7 UUID, so that names sort by time.
    pub id: RunId,
    /// The version of herma.
    pub herma_version: String,
    /// When the last check ended.
    pub made_at: Timestamp,
    /// The status that follows from the checks.
    pub status: HealthStatus,
    /// The names of the checks that failed, in their order.
    pub failing: Vec<String>,
    /// The checks, in the order in which they were made.
    pub checks: Vec<HealthCheck>,
    /// The record of the failure matrix that this check made.
    pub matrix_report_path: Option<Reference>,
    /// The digest of the control summary that was checked, without its health; none where there was none. Where the summary
    /// has another digest now, this record is stale.
    pub summary_digest: Option<Digest>,
}

impl Signable for HealthReport {
    const KIND: &'static str = "herma.health/v1";
}

/// The version of the record's format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum HealthSchema {
    /// The first version.
    #[serde(rename = "herma.health/v1")]
    V1,
}

/// The status of a system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum HealthStatus {
    /// Every check was made, and held or did not apply.
    Green,
    /// A check failed.
    Red,
    /// No check failed, and not all of them were made.
    Incomplete,
}

/// One check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HealthCheck {
    /// Its name, with its subject where there are several: `proof:fake/4`.
    pub name: String,
    /// The result.
    pub outcome: HealthOutcome,
    /// The finding, in words.
    pub detail: String,
    /// The evidence that was looked at; empty where there is none.
    pub evidence_paths: Vec<Reference>,
}

/// The result of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum HealthOutcome {
    /// It holds.
    Passed,
    /// It does not hold, or could not be made where it has to be.
    Failed,
    /// The installation has nothing of the kind; the detail says why.
    NotApplicable,
    /// It was left out, or an earlier failure ended the check.
    NotRun,
}

impl HealthStatus {
    /// The name as it is written in files and on the screen.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Green => "green",
            Self::Red => "red",
            Self::Incomplete => "incomplete",
        }
    }

    /// The status that follows from checks. Without a check that passed nothing is green.
    #[must_use]
    pub fn of(checks: &[HealthCheck]) -> Self {
        let any = |outcome| checks.iter().any(|check| check.outcome == outcome);
        if any(HealthOutcome::Failed) {
            Self::Red
        } else if any(HealthOutcome::NotRun) || !any(HealthOutcome::Passed) {
            Self::Incomplete
        } else {
            Self::Green
        }
    }
}

impl HealthOutcome {
    /// The name as it is written in files and on the screen.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Failed => "failed",
            Self::NotApplicable => "not_applicable",
            Self::NotRun => "not_run",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_outweighs_everything_and_nothing_left_out_is_green() {
        use HealthOutcome::{Failed, NotApplicable, NotRun, Passed};
        let status = |outcomes: &[HealthOutcome]| {
            let check = |outcome: &HealthOutcome| HealthCheck {
                name: String::new(),
                outcome: *outcome,
                detail: String::new(),
                evidence_paths: Vec::new(),
            };
            HealthStatus::of(&outcomes.iter().map(check).collect::<Vec<_>>())
        };
        assert_eq!(status(&[Passed, NotApplicable]), HealthStatus::Green);
        assert_eq!(status(&[Passed, NotRun]), HealthStatus::Incomplete);
        assert_eq!(status(&[Passed, NotRun, Failed]), HealthStatus::Red);
        assert_eq!(status(&[NotApplicable]), HealthStatus::Incomplete);
        assert_eq!(status(&[]), HealthStatus::Incomplete);
    }
}
