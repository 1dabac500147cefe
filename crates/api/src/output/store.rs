//! Output of commands about the store.

use herma_core::RunId;
use herma_core::store::{StoreCounts, StoreDescription};
use schemars::JsonSchema;
use serde::Serialize;

/// `herma store check --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct StoreCheckOutput {
    /// `herma.store-check/v1`.
    pub schema: &'static str,
    /// Whether the store agrees with the bundles of this home.
    pub ok: bool,
    /// The database.
    pub store: StoreDescription,
    /// The numbers of its rows.
    pub counts: StoreCounts,
    /// How many bundles of this home were compared with it.
    pub bundles: u64,
    /// Where they disagree.
    pub disagreements: Vec<StoreDisagreement>,
}

/// A run about which the store and its bundle disagree.
#[derive(Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct StoreDisagreement {
    /// The run.
    pub run_id: RunId,
    /// The kind of the disagreement.
    pub kind: StoreDisagreementKind,
    /// One sentence about it.
    pub problem: String,
}

/// The kind of a disagreement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StoreDisagreementKind {
    /// The store does not have the run.
    MissingRow,
    /// The store has another verdict.
    OtherStatus,
    /// The store has another contract.
    OtherContract,
    /// The store has other artifacts, or other digests of them.
    OtherArtifacts,
    /// The report in the bundle cannot be read.
    UnreadableBundle,
    /// This home has no bundle of the run.
    MissingBundle,
}

/// `herma store rebuild --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct StoreRebuildOutput {
    /// `herma.store-rebuild/v1`.
    pub schema: &'static str,
    /// The database.
    pub store: StoreDescription,
    /// How many runs were recorded from their bundles.
    pub runs: u64,
    /// The bundles that do not verify. Their runs are not in the index.
    pub refused: Vec<RefusedBundle>,
    /// How many approvals that were not used can no longer be.
    pub voided_approvals: u64,
    /// Where a file that was no store was moved to.
    pub set_aside: Option<String>,
}

/// A bundle that does not verify.
#[derive(Debug, Serialize, JsonSchema)]
pub struct RefusedBundle {
    /// The run.
    pub run_id: RunId,
    /// The first check that failed.
    pub problem: String,
}

/// `herma store migrate --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct StoreMigrateOutput {
    /// `herma.store-migrate/v1`.
    pub schema: &'static str,
    /// The store that was copied.
    pub from: StoreDescription,
    /// The store that it was copied to.
    pub to: StoreDescription,
    /// The numbers of rows, which are the same in both.
    pub counts: StoreCounts,
    /// Whether `settings.yaml` names the new store now.
    pub is_in_use: bool,
}
