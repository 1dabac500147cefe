//! Output of `herma summary` and `herma summary check`.

use herma_core::Stage;
use herma_core::approval::{ApprovalId, ApprovalState};
use herma_core::approver::ApproverName;
use herma_core::contract::{Action, Pattern};
use herma_core::engine::EngineName;
use herma_core::reference::Reference;
use herma_core::report::NeverActivated;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The control summary: ids and references of records that verify now. It has no time of its own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SummaryOutput {
    /// `herma.summary/v1`.
    pub schema_version: SummarySchema,
    /// The last health check.
    pub health: HealthSummary,
    /// The engine that validates herma itself: always `fake`.
    pub default_validation_lane: EngineName,
    /// Always false: nothing in herma switches a default.
    pub runtime_default_activation: NeverActivated,
    /// Always `not-promoted`: being a candidate is evidence, not promotion.
    pub promotion_status: NotPromoted,
    /// Every stage of every engine.
    pub proof_ladder: Vec<LadderRow>,
    /// The engine that is a candidate for the default.
    pub candidate_default: Field<CandidateDefault>,
    /// The last refresh of a candidate's evidence.
    pub refresh: Field<Refresh>,
    /// The accepted runs of the candidate, or of the engine that has most of them.
    pub repeatability: Field<Repeatability>,
    /// The newest passing run on a repository that shows that the target stayed as it was.
    pub target_read_only: Field<TargetReadOnly>,
    /// Engines that cannot run work now.
    pub blocked_lanes: Vec<BlockedLane>,
    /// Records to look at again.
    pub replay: Replay,
    /// The newest open request for an approval, else the newest approval that a run used.
    pub approval: ApprovalSummary,
    /// The packet of that approval. It is never executable.
    pub approval_packet: ApprovalPacket,
    /// The newest governed run that passed with an approval.
    pub governed_execution: Field<GovernedExecution>,
    /// Whether HEAD, index, work tree or a ref that is not herma's changed in a target.
    pub target_repository_mutation: Field<bool>,
    /// The branches that runs landed in targets.
    pub landed_branches: Vec<LandedBranch>,
    /// The next step for a person.
    pub next_operator_action: String,
}

/// The version of the summary's format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum SummarySchema {
    /// The first version.
    #[serde(rename = "herma.summary/v1")]
    V1,
}

/// The only value that `promotion_status` can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum NotPromoted {
    /// Nothing was promoted.
    #[serde(rename = "not-promoted")]
    NotPromoted,
}

/// A field, or why it has no value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Field<T> {
    /// Its value, from records that verify.
    Known(T),
    /// There is none.
    Absent(Absent),
}

/// Why a field has no value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Absent {
    /// Whether there is no record, or one that does not verify.
    pub status: AbsentStatus,
    /// The reason.
    pub reason: String,
}

/// Whether there is no record, or one that does not verify.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AbsentStatus {
    /// There is no such record.
    NotRecorded,
    /// There is one, and it does not verify.
    Blocked,
}

/// The last health check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HealthSummary {
    /// Its status.
    pub status: HealthNow,
    /// Why it is not the recorded one.
    pub reason: Option<String>,
    /// The record of the health check.
    pub health_report_path: Option<Reference>,
    /// The record of the newest run of the failure matrix.
    pub matrix_report_path: Option<Reference>,
}

/// The status of the last health check, as far as it still counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum HealthNow {
    /// Every check held.
    Green,
    /// A check failed.
    Red,
    /// Not all checks were made.
    Incomplete,
    /// There is no record.
    NotRecorded,
    /// The record does not verify, or other records changed since.
    Blocked,
}

/// One stage of one engine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LadderRow {
    /// The engine.
    pub engine: EngineName,
    /// The stage.
    pub stage: Stage,
    /// Its state.
    pub status: LadderStatus,
    /// Why.
    pub reason: String,
    /// The proof and the bundles behind it.
    pub evidence_paths: Vec<Reference>,
}

/// The state of a stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LadderStatus {
    /// It needs no proof: the engine is part of herma itself.
    BuiltIn,
    /// It is proven, and everything behind the proof verifies.
    Proven,
    /// It was never proven.
    Unproven,
    /// There is a proof that does not verify or is stale.
    Blocked,
}

/// The engine that is a candidate for the default.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CandidateDefault {
    /// The engine.
    pub engine: EngineName,
    /// Whether it matches or beats every other lane.
    pub eligible: bool,
    /// The comparison that this follows from.
    pub comparison_path: Reference,
}

/// The refresh of a candidate's evidence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Refresh {
    /// `current`.
    pub status: String,
    /// Whether the candidate is eligible by it.
    pub eligible: bool,
    /// The record.
    pub comparison_path: Reference,
}

/// Accepted runs of different contracts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Repeatability {
    /// The engine.
    pub engine: EngineName,
    /// How many a candidate needs.
    pub required: u32,
    /// How many it has.
    pub count: u32,
    /// Whether that is enough.
    pub status: RepeatabilityStatus,
    /// The same as a truth value.
    pub eligible: bool,
    /// The reports of these runs.
    pub evidence_paths: Vec<Reference>,
}

/// Whether there are enough accepted runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RepeatabilityStatus {
    /// There are.
    Met,
    /// There are not.
    NotMet,
}

/// A run that left its target as it was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TargetReadOnly {
    /// Always `held`.
    pub status: Held,
    /// The report of the run.
    pub proof_path: Reference,
}

/// The only value of a property that a record shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Held {
    /// It holds.
    Held,
}

/// An engine that cannot run work now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BlockedLane {
    /// The engine.
    pub lane: EngineName,
    /// Why.
    pub rationale: String,
}

/// References to what can be looked at again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Replay {
    /// The newest run of the failure matrix.
    pub matrix: Field<Reference>,
    /// The newest comparison.
    pub comparison: Field<Reference>,
    /// The reports of the failure cases behind the proofs.
    pub failure_closure: Vec<Reference>,
    /// The newest refresh.
    pub refresh: Field<Reference>,
    /// The report of the newest passing stage 5 run.
    pub stage5_report: Field<Reference>,
    /// The proof of stage 5.
    pub stage5_proof: Field<Reference>,
}

/// The newest open request for an approval, else the newest approval that a run used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[allow(clippy::struct_excessive_bools, reason = "they are the columns of the table of states")]
pub struct ApprovalSummary {
    /// The approval; none where none was requested.
    pub approval_id: Option<ApprovalId>,
    /// Its record.
    pub approval_path: Option<Reference>,
    /// Its state in the store; it decides nothing without the signature and the trust chain.
    pub state: Option<ApprovalState>,
    /// The approver whose signature grants it.
    pub approver: Option<ApproverName>,
    /// The signature and the records that it depends on.
    pub provenance_paths: Vec<Reference>,
    /// Always true: no run from stage 4 on starts without an approval.
    pub approval_required: bool,
    /// Whether a trusted approver granted it, and nothing that it is bound to changed.
    pub approval_granted: bool,
    /// Whether a run may use it now.
    pub execution_allowed: bool,
    /// The permitted execution; none where nothing may be executed.
    pub execution_scope: Option<ExecutionScope>,
    /// Whether a run used it.
    pub approval_consumed: bool,
    /// Why.
    pub reason: String,
    /// The steps that are possible now.
    pub allowed_next_actions: Vec<NextAction>,
    /// The steps that are not.
    pub blocked_next_actions: Vec<NextAction>,
}

/// The rights that an approval gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ExecutionScope {
    /// One run of exactly the approved contract.
    #[serde(rename = "one run")]
    OneRun,
}

/// A step of a person.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NextAction {
    /// Ask for an approval.
    RequestApproval,
    /// Grant the request with an approver's key.
    Grant,
    /// Deny the request.
    Deny,
    /// Run the approved contract once.
    Run,
    /// Accept the landed result.
    Accept,
    /// Reject the landed result.
    Reject,
    /// Make an engine the default. herma never does.
    ActivateDefault,
    /// Promote a candidate. herma never does.
    Promote,
}

/// The packet of an approval.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ApprovalPacket {
    /// Whether it can be ruled on.
    pub status: PacketStatus,
    /// Always false: the text is to be read and typed by a person.
    pub executable: NotExecutable,
    /// The commands that a person types; none where there is nothing to rule on.
    pub approval_command_text: Option<String>,
    /// The records that the ruling should depend on.
    pub required_evidence_paths: Vec<Reference>,
    /// The patterns of paths that the run may change.
    pub allowed_paths: Vec<Pattern>,
    /// The actions that stay forbidden.
    pub blocked_actions: Vec<Action>,
}

/// The state of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PacketStatus {
    /// There is no open request, or the evidence that it needs does not verify.
    NotReady,
    /// A request is open, and the evidence that it needs verifies.
    ProofReady,
    /// A run that passed used it.
    ConsumedByPassEvidence,
}

/// The only value that `executable` can have: `false`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "bool", into = "bool")]
#[schemars(with = "bool", extend("const" = false))]
pub struct NotExecutable;

impl TryFrom<bool> for NotExecutable {
    type Error = &'static str;

    fn try_from(value: bool) -> Result<Self, &'static str> {
        if value { Err("executable is always false") } else { Ok(Self) }
    }
}

impl From<NotExecutable> for bool {
    fn from(_: NotExecutable) -> Self {
        false
    }
}

/// A governed run that passed with an approval.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GovernedExecution {
    /// Always true here.
    pub approval_consumed: bool,
    /// The approval.
    pub approval_path: Reference,
    /// The report of the run.
    pub pass_report_path: Reference,
    /// The proof of its stage; none where that does not verify any more.
    pub proof_path: Option<Reference>,
}

/// A branch that a run landed in a target.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LandedBranch {
    /// Its full name.
    pub branch: String,
    /// The report of the run.
    pub report_path: Reference,
    /// The state of the operator's outcome.
    pub outcome: LandedOutcome,
}

/// The state of the outcome of a landed branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LandedOutcome {
    /// It was accepted.
    Accepted,
    /// It was rejected, and is gone.
    Rejected,
    /// It can still be given.
    Pending,
    /// It was not given in time.
    Missing,
    /// It does not count.
    Void,
}

/// The result of `herma summary check`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SummaryCheckOutput {
    /// `herma.summary-check/v1`.
    pub schema: SummaryCheckSchema,
    /// Whether there is no error.
    pub ok: bool,
    /// The checks that were made.
    pub checked: Vec<String>,
    /// The errors, each with the field that it is about.
    pub errors: Vec<SummaryError>,
}

/// The version of the result's format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum SummaryCheckSchema {
    /// The first version.
    #[serde(rename = "herma.summary-check/v1")]
    V1,
}

/// An error in a control summary.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SummaryError {
    /// The check that found it.
    pub check: String,
    /// The problem, in a sentence.
    pub detail: String,
}

impl<T> Field<T> {
    /// A field whose record does not exist.
    #[must_use]
    pub fn not_recorded(reason: impl Into<String>) -> Self {
        Self::Absent(Absent { status: AbsentStatus::NotRecorded, reason: reason.into() })
    }

    /// A field whose record does not verify.
    #[must_use]
    pub fn blocked(reason: impl Into<String>) -> Self {
        Self::Absent(Absent { status: AbsentStatus::Blocked, reason: reason.into() })
    }

    /// The value.
    #[must_use]
    pub fn known(&self) -> Option<&T> {
        match self {
            Self::Known(value) => Some(value),
            Self::Absent(_) => None,
        }
    }
}
