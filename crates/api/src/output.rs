//! The output types of `--json`. Each has a `schema` that names its version; `herma schema NAME` prints it.

mod admissions;
mod apply;
mod approvals;
mod approvers;
mod destinations;
mod dry_run;
mod egress;
mod engines;
mod environments;
mod ladder;
mod models;
mod outcome;
mod policy;
mod quickstart;
mod reference;
mod retention;
mod router;
mod router_probe;
mod store;
mod summary;
mod tree;
mod trust;

use std::collections::BTreeMap;

use herma_core::report::ChangedFile;
use herma_core::step::TraceLine;
use herma_core::store::RunSummary;
use herma_core::transcript::TranscriptLine;
use herma_core::{Digest, Event, RunId, Status, Timestamp};
use herma_evidence::verify::Check;
use schemars::JsonSchema;
use serde::Serialize;

pub use self::admissions::{AdmissionOutput, AdmissionRecord, AdmissionRow, AdmissionsOutput};
pub use self::apply::{ApplyAction, ApplyOutput};
pub use self::approvals::{ApprovalOutput, ApprovalRow, ApprovalsOutput};
pub use self::approvers::{ApproverItem, ApproverOutput, ApproversOutput};
pub use self::destinations::{DestinationOutput, DestinationRow, DestinationsOutput, ProbeOutput, ProbeRow};
pub use self::dry_run::{DryRunGate, DryRunOutput};
pub use self::egress::{
    EgressGrantOutput, EgressLearnedOutput, EgressList, EgressListOutput, EgressOutput, EgressTestOutput,
    GrantItem,
};
pub use self::engines::{EngineRow, EnginesOutput, InstalledOutput};
pub use self::environments::{
    EnvironmentBuiltOutput, EnvironmentLayerOutput, EnvironmentsOutput, EnvironmentsPrunedOutput, LayerRow,
};
pub use self::ladder::{LadderOutput, ProofsOutput};
pub use self::models::{ModelRow, ModelsOutput, PriceShown, UsageItem, UsageOutput, UsageShown};
pub use self::outcome::{OutcomeOutput, OutcomeRow, OutcomeWordNow};
pub use self::policy::{
    CaseItem, DecisionItem, PolicyCheckOutput, PolicyExplainOutput, PolicyTestOutput, RuleItem,
};
pub use self::quickstart::{
    QuickstartFinding, QuickstartOutput, QuickstartPage, QuickstartRecord, QuickstartState, QuickstartStep,
    QuickstartStepName,
};
pub use self::reference::{ReferenceOutput, ReferenceSchema};
pub use self::retention::{
    DiscardOutput, ExportOutput, GcBundle, GcEnvironment, GcKept, GcOutput, GcWorkspace,
};
pub use self::router::{RouterCheckOutput, RouterModel, RouterOutput};
pub use self::router_probe::RouterProbeOutput;
pub use self::store::{
    RefusedBundle, StoreCheckOutput, StoreDisagreement, StoreDisagreementKind, StoreMigrateOutput,
    StoreRebuildOutput,
};
pub use self::summary::{
    Absent, AbsentStatus, ApprovalPacket, ApprovalSummary, BlockedLane, CandidateDefault, ExecutionScope,
    Field, GovernedExecution, HealthNow, HealthSummary, Held, LadderRow, LadderStatus, LandedBranch,
    LandedOutcome, NextAction, NotExecutable, NotPromoted, PacketStatus, Refresh, Repeatability,
    RepeatabilityStatus, Replay, SummaryCheckOutput, SummaryCheckSchema, SummaryError, SummaryOutput,
    SummarySchema, TargetReadOnly,
};
pub use self::tree::{TreeNode, TreeOutput};
pub use self::trust::TrustOutput;

/// A failed command.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ErrorOutput {
    /// `herma.error/v1`.
    pub schema: &'static str,
    /// The error.
    pub error: String,
    /// The next step.
    pub next_step: Option<String>,
    /// The exit code: 2 bad input, 3 blocked, 4 internal.
    pub exit_code: u8,
}

/// `herma runs --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct RunsOutput {
    /// `herma.runs/v1`.
    pub schema: &'static str,
    /// Newest first.
    pub runs: Vec<RunRow>,
    /// The value of `--before` for the next page; none on the last one.
    pub next_before: Option<RunId>,
}

/// A run in a list.
#[derive(Debug, Serialize, JsonSchema)]
pub struct RunRow {
    /// The run.
    #[serde(flatten)]
    pub run: RunSummary,
    /// Its outcome, if it needs one.
    pub outcome: Option<OutcomeRow>,
    /// When `herma gc` removed its bundle; not there while the bundle is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bundle_removed_at: Option<Timestamp>,
}

/// `herma diff --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct DiffOutput {
    /// `herma.diff/v1`.
    pub schema: &'static str,
    /// The run.
    pub run_id: RunId,
    /// The changes.
    pub changed_files: Vec<ChangedFile>,
    /// The patch; none if there is none, or it was withheld.
    pub patch: Option<String>,
    /// Why there is no patch.
    pub reason: Option<String>,
    /// The files that were changed after they were signed, as text; empty where none was.
    pub touched: Vec<String>,
}

/// `herma logs --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct LogsOutput {
    /// `herma.logs/v1`.
    pub schema: &'static str,
    /// The run.
    pub run_id: RunId,
    /// The transcript; none for a run without one, and where logs were asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transcript: Option<Vec<TranscriptLine>>,
    /// Each log's text by its name in the bundle; empty where the transcript is shown.
    pub logs: BTreeMap<String, String>,
    /// The files that were changed after they were signed, as text; empty where none was.
    pub touched: Vec<String>,
}

/// One line of `herma logs --follow --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct LogChunkOutput {
    /// `herma.log-chunk/v1`.
    pub schema: &'static str,
    /// The run.
    pub run_id: RunId,
    /// The log's name in the bundle.
    pub log: String,
    /// The text since the last line about this log.
    pub text: String,
}

/// One line of `herma logs --follow --json` without `--raw` and `--only`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct TranscriptLineOutput {
    /// `herma.transcript-line/v1`.
    pub schema: &'static str,
    /// The run.
    pub run_id: RunId,
    /// The entry.
    #[serde(flatten)]
    pub line: TranscriptLine,
}

/// One line of `herma watch --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct WatchOutput {
    /// `herma.watch/v1`.
    pub schema: &'static str,
    /// The run.
    pub run_id: RunId,
    /// The step, event or end.
    #[serde(flatten)]
    pub watched: Watched,
}

/// An observation of `herma watch`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Watched {
    /// A line of `trace.jsonl`: the run is about to take this step.
    Step(TraceLine),
    /// A line of `events.jsonl`.
    Event(Event),
    /// A line of `transcript.jsonl`.
    Transcript(TranscriptLine),
    /// The run is closed; nothing follows.
    Closed {
        /// The verdict; none where the run left no report.
        status: Option<Status>,
    },
}

/// `herma verify --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct VerifyOutput {
    /// `herma.verify/v1`.
    pub schema: &'static str,
    /// Whether every check passed or does not apply.
    pub ok: bool,
    /// Every check, in order.
    pub checks: Vec<Check>,
}

/// `herma contract check|digest --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ContractOutput {
    /// `herma.contract-check/v1`.
    pub schema: &'static str,
    /// The contract's name.
    pub contract_id: String,
    /// The contract's digest.
    pub contract_digest: Digest,
    /// The contract's title.
    pub title: String,
    /// The contract's stage.
    pub stage: u8,
    /// Things that would block a run of it.
    pub warnings: Vec<String>,
}

/// `herma init --json` and `herma contract new --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct WrittenOutput {
    /// `herma.written/v1`.
    pub schema: &'static str,
    /// The file that was written.
    pub file: String,
    /// The next step.
    pub next_step: String,
}

/// `herma schema --json` without a name.
#[derive(Debug, Serialize, JsonSchema)]
pub struct SchemasOutput {
    /// `herma.schemas/v1`.
    pub schema: &'static str,
    /// Every schema's name with what it is for.
    pub schemas: BTreeMap<&'static str, &'static str>,
}

/// `herma completions --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct CompletionsOutput {
    /// `herma.completions/v1`.
    pub schema: &'static str,
    /// The shell.
    pub shell: String,
    /// The script to source in it.
    pub script: String,
}

/// `herma doctor --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct DoctorOutput {
    /// `herma.doctor/v1`.
    pub schema: &'static str,
    /// Whether every required part works.
    pub ok: bool,
    /// The checks.
    pub items: Vec<DoctorItem>,
}

/// One check of `herma doctor`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct DoctorItem {
    /// The name.
    pub name: String,
    /// Whether it works.
    pub ok: bool,
    /// Whether herma requires it.
    pub required: bool,
    /// The result.
    pub detail: String,
    /// The fix.
    pub next_step: Option<String>,
}

/// `herma bench harness --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct BenchOutput {
    /// `herma.bench/v1`.
    pub schema: &'static str,
    /// One row for each measurement.
    pub rows: Vec<BenchRow>,
}

/// One measurement: ours against the same work without herma, medians of the same run.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct BenchRow {
    /// The name of the measurement.
    pub name: String,
    /// Files of the repository or bundle.
    pub files: u64,
    /// With herma, in milliseconds.
    pub governed_ms: f64,
    /// Without herma, in milliseconds.
    pub bare_ms: f64,
    /// How many times as long it takes with herma.
    pub ratio: f64,
    /// The ratio that must not be exceeded.
    pub limit: f64,
    /// The most memory that herma itself used, in KiB, where it was measured.
    pub peak_kib: Option<u64>,
}
