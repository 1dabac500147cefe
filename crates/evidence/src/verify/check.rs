//! The result of a verification.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The checks, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CheckName {
    /// No file is missing, extra, a link or something special.
    Files,
    /// The attestation is spelled canonically.
    Envelope,
    /// A trusted key signed it.
    Signature,
    /// Every file has the digest that was signed.
    Subjects,
    /// It is the bundle of the run that was named.
    Identity,
    /// The report is one.
    ReportSchema,
    /// `report.md` is what `report.json` renders to.
    ReportText,
    /// The report lists what is there, and gives a reason for what is not.
    Artifacts,
    /// Every event names the digest of the one before.
    Chain,
    /// The events that such a run must leave are there, in order.
    Order,
    /// Everything was written inside the run.
    Freshness,
    /// The contract is the one that the report names.
    Contract,
    /// The decision agrees with what happened.
    Decision,
    /// The probes of the destination are those that the run recorded, and all of them were refused before an engine started.
    Confinement,
    /// The steps are those of such a run, and the verification commands ended in the log as in the report.
    Steps,
    /// The patch does what the report says, blob by blob.
    Patch,
    /// The changes lie where the contract allows them.
    Paths,
    /// Report, events, attestation and model calls say the same.
    Agreement,
    /// No file holds a secret.
    Secrets,
    /// The patch on the baseline gives the recorded tree.
    Tree,
    /// An approver gave the outcome, where there is one.
    Outcome,
}

impl CheckName {
    /// The name as it is written in files and on the screen.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Files => "files",
            Self::Envelope => "envelope",
            Self::Signature => "signature",
            Self::Subjects => "subjects",
            Self::Identity => "identity",
            Self::ReportSchema => "report_schema",
            Self::ReportText => "report_text",
            Self::Artifacts => "artifacts",
            Self::Chain => "chain",
            Self::Order => "order",
            Self::Freshness => "freshness",
            Self::Contract => "contract",
            Self::Decision => "decision",
            Self::Confinement => "confinement",
            Self::Steps => "steps",
            Self::Patch => "patch",
            Self::Paths => "paths",
            Self::Agreement => "agreement",
            Self::Secrets => "secrets",
            Self::Tree => "tree",
            Self::Outcome => "outcome",
        }
    }
}

/// The result of one check. A check that could not run has failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CheckOutcome {
    /// It holds.
    Passed,
    /// It does not hold, or what it is about is not there.
    Failed,
    /// An input besides the bundle is missing. It counts as failed.
    Unchecked,
    /// The run has nothing of the kind.
    NotApplicable,
}

/// One check of a bundle.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Check {
    /// Which one.
    pub name: CheckName,
    /// How it ended.
    pub outcome: CheckOutcome,
    /// The finding, in words.
    pub detail: String,
}

/// All checks of a bundle.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CheckList {
    /// In the order in which they were made.
    pub checks: Vec<Check>,
}

/// A check that did not fail.
#[derive(Debug)]
pub(super) enum Good {
    Passed(String),
    NotApplicable(String),
}

/// Why a check did not pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Doubt {
    /// It does not hold.
    Broken(String),
    /// An input besides the bundle is missing.
    Unchecked(String),
}

impl From<String> for Doubt {
    fn from(detail: String) -> Self {
        Self::Broken(detail)
    }
}

impl CheckList {
    pub(super) fn add(&mut self, name: CheckName, found: Result<Good, impl Into<Doubt>>) {
        let (outcome, detail) = match found.map_err(Into::into) {
            Ok(Good::Passed(detail)) => (CheckOutcome::Passed, detail),
            Ok(Good::NotApplicable(detail)) => (CheckOutcome::NotApplicable, detail),
            Err(Doubt::Broken(detail)) => (CheckOutcome::Failed, detail),
            Err(Doubt::Unchecked(detail)) => (CheckOutcome::Unchecked, detail),
        };
        self.checks.push(Check { name, outcome, detail });
    }

    /// Whether checks were made and none failed.
    #[must_use]
    pub fn ok(&self) -> bool {
        !self.checks.is_empty() && self.failed().next().is_none()
    }

    /// The checks that failed or could not be made, in order.
    pub fn failed(&self) -> impl Iterator<Item = &Check> {
        let good = [CheckOutcome::Passed, CheckOutcome::NotApplicable];
        self.checks.iter().filter(move |check| !good.contains(&check.outcome))
    }
}
