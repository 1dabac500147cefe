//! Output of a dry run.

use herma_core::environment::{BaseResult, LayerBuildRecord};
use herma_core::gate::{Finding, Gate};
use schemars::JsonSchema;
use serde::Serialize;

/// `herma run --dry-run --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct DryRunOutput {
    /// `herma.dry-run/v1`.
    pub schema: &'static str,
    /// The contract.
    pub contract_id: String,
    /// Whether no gate that was evaluated would block the run.
    pub would_start: bool,
    /// Every gate.
    pub gates: Vec<DryRunGate>,
    /// The layers of the environment.
    pub layers: Vec<LayerBuildRecord>,
    /// How the verification commands ended on the base.
    pub verify_before: Vec<BaseResult>,
    /// The last lines of the command that failed first.
    pub last_lines: Vec<String>,
}

/// A gate of a dry run.
#[derive(Debug, Serialize, JsonSchema)]
pub struct DryRunGate {
    /// Its name.
    pub gate: &'static str,
    /// `passed`, `not_applicable`, `missing` or `not_evaluated`.
    pub result: &'static str,
    /// The blocker of a missing gate.
    pub blocker: Option<String>,
    /// Why it is missing or does not apply.
    pub detail: Option<String>,
    /// The next step for a missing gate.
    pub next_step: Option<String>,
}

impl DryRunGate {
    /// The row of a gate; without a finding it was not evaluated.
    #[must_use]
    pub fn new(gate: Gate, finding: Option<&Finding>) -> Self {
        let row = |result| Self { gate: gate.as_str(), result, blocker: None, detail: None, next_step: None };
        match finding {
            None => row("not_evaluated"),
            Some(Finding::Passed) => row("passed"),
            Some(Finding::NotApplicable(why)) => Self { detail: Some(why.clone()), ..row("not_applicable") },
            Some(Finding::Missing(record)) => Self {
                blocker: Some(record.blocker.to_string()),
                detail: Some(record.detail.clone()),
                next_step: Some(record.next_step.clone()),
                ..row("missing")
            },
        }
    }
}
