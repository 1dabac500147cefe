//! The report of a run, as it is in `report.json`.

use std::collections::BTreeMap;
use std::fmt;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::approval::ApprovalId;
use crate::blocker::BlockerRecord;
use crate::capability::{Capability, Support};
pub use crate::change::{ChangedFile, Entry, Mode};
use crate::child::ChildEnd;
pub use crate::child::ChildrenUse;
use crate::content::MissingList;
use crate::contract::{Action, ContractId};
use crate::digest::Digest;
pub use crate::egress::{EgressMode, EgressUse};
use crate::engine::{DestinationKind, EngineExit, EngineName};
pub use crate::environment::{BaseResult, EnvironmentUse};
use crate::id::RunId;
pub use crate::landing::{LandedIn, LandingRecord};
use crate::path::RepoPath;
use crate::stage::{MutationScope, Stage};
pub use crate::tool::{ModelToolCalls, PermissionProtocol, ToolUse};
use crate::trust::TrustHead;
pub use crate::usage::Usage;
use crate::verdict::Status;

/// The report of a run. A field that does not apply is `null` and named in `not_applicable` with the reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Report {
    /// `herma.report/v1`.
    pub schema: ReportSchema,
    /// The version of herma that wrote it.
    pub herma_version: String,
    /// The run's name.
    pub run_id: RunId,
    /// The run that this one goes on with, or the one whose agent asked for it.
    pub parent_run: Option<RunId>,
    /// The contract's name.
    pub contract_id: ContractId,
    /// The contract's digest.
    pub contract_digest: Digest,
    /// The verdict's status.
    pub status: Status,
    /// The engine.
    pub engine: EngineName,
    /// The engine's version.
    pub engine_version: String,
    /// The digest of what ran; none for an engine that herma does not have, or a run that ended before it was taken.
    pub engine_digest: Option<Digest>,
    /// Whether the engine's process was started.
    pub engine_started: bool,
    /// How it ended.
    pub engine_exit: Option<EngineExit>,
    /// How the engine supports each capability that the contract needs; not there where the contract needs none, and where
    /// herma does not have the engine.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub needs: BTreeMap<Capability, Support>,
    /// The contract's stage.
    pub stage: Stage,
    /// The scope that the run could change.
    pub mutation_scope: MutationScope,
    /// Where the engine ran.
    pub destination: DestinationKind,
    /// The isolation layers that confined it.
    pub walls: Vec<String>,
    /// The contract's provider.
    pub model_provider: Option<String>,
    /// The contract's model.
    pub model: Option<String>,
    /// The provider that really answered.
    pub model_runtime_provider: Option<String>,
    /// Whether the model was admitted.
    pub model_admission: Admission,
    /// Whether the engine was admitted.
    pub engine_admission: Admission,
    /// Whether the target was admitted.
    pub target_admission: Admission,
    /// The state of the approval.
    pub approval_status: ApprovalStatus,
    /// The approval that this run used, or that kept it from starting.
    pub approval_id: Option<ApprovalId>,
    /// When the run started.
    pub run_started_at: Timestamp,
    /// When the run ended.
    pub run_finished_at: Timestamp,
    /// The parentless commit that the workspace started from.
    pub baseline_commit: Option<String>,
    /// The tree that the engine left, without what never lands.
    pub result_tree: Option<String>,
    /// One commit of that tree on the baseline.
    pub result_commit: Option<String>,
    /// The changes of the engine.
    pub changed_files: Vec<ChangedFile>,
    /// Which of these look like tests: a green test that the agent rewrote is shown as such.
    pub changed_tests: Vec<RepoPath>,
    /// Which of these decide what verification does and are no tests: build files, configuration of runners and checkers,
    /// scripts that a command names, a module in the place of a test runner.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changed_verification_files: Vec<RepoPath>,
    /// New files that the baseline's ignore rules cover: recorded, never part of the patch.
    pub ignored_files: Vec<RepoPath>,
    /// Whether every change is on an allowed path.
    pub allowed_paths_passed: Option<bool>,
    /// Whether no change is on a forbidden path.
    pub forbidden_paths_passed: Option<bool>,
    /// Every path that broke a rule.
    pub path_violations: Vec<PathViolation>,
    /// Forbidden actions that the engine attempted.
    pub forbidden_actions_attempted: Vec<Action>,
    /// Whether all events that such a run must leave are there, in order.
    pub required_events_passed: bool,
    /// The environment of the run; none where the contract has none, or where it was not built.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub environment: Option<EnvironmentUse>,
    /// Submodules and Git LFS files of the base that the target does not have, and so the workspace did not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing_content: Option<MissingList>,
    /// How the verification commands ended on the untouched base, before the engine started.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub verify_before: Vec<BaseResult>,
    /// The verification commands and how each ended.
    pub verification: Vec<Verification>,
    /// The same commands with the tests, and the files that decide what verification does, as they were, where the engine
    /// changed some and the contract does not allow the result to lean on that.
    pub verification_with_baseline_tests: Vec<Verification>,
    /// Whether the target was clean before.
    pub target_clean_start: Option<bool>,
    /// Whether the target was clean after.
    pub target_clean_end: Option<bool>,
    /// Whether anything in the target changed.
    pub source_mutated: Option<bool>,
    /// The branch that it became in a repository, from stage 4 on.
    pub landing: Option<LandingRecord>,
    /// The operator's word on the result.
    pub outcome: OutcomeState,
    /// Until when it has to be given.
    pub outcome_due: Option<Timestamp>,
    /// The usage of models.
    pub usage: Usage,
    /// The charges of its child runs for models, besides that; none for a run that had no child.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub children: Option<ChildrenUse>,
    /// The totals of its egress proxy; none for a run that had none.
    #[serde(default)]
    pub egress: Option<EgressUse>,
    /// The permission requests of its engine for tool calls; none for an engine that makes none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<ToolUse>,
    /// Why it is not a pass.
    pub blockers: Vec<BlockerRecord>,
    /// The fields that do not apply to this run, with the reason.
    pub not_applicable: BTreeMap<String, String>,
    /// Every other file of the bundle except the attestation.
    pub artifacts: BTreeMap<String, Artifact>,
    /// Whether all files were written inside the run.
    pub freshness: Freshness,
    /// The head of the trust chain when the run started; not there in reports of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trust_head: Option<TrustHead>,
    /// Always false: nothing in herma switches a default.
    pub runtime_default_activation: NeverActivated,
}

/// The version of the report's format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ReportSchema {
    /// The first version.
    #[serde(rename = "herma.report/v1")]
    V1,
}

/// The only value that `runtime_default_activation` can have: `false`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "bool", into = "bool")]
#[schemars(with = "bool", extend("const" = false))]
pub struct NeverActivated;

impl TryFrom<bool> for NeverActivated {
    type Error = &'static str;

    fn try_from(value: bool) -> Result<Self, &'static str> {
        if value { Err("runtime_default_activation is always false") } else { Ok(Self) }
    }
}

impl From<NeverActivated> for bool {
    fn from(_: NeverActivated) -> Self {
        false
    }
}

/// Whether a record lets something in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Admission {
    /// A person let it in.
    Admitted,
    /// It is part of herma itself: the engine `fake`, a built-in fixture.
    BuiltIn,
    /// No record is needed at this stage, or the contract names nothing to admit.
    NotApplicable,
    /// There is no record.
    MissingAdmission,
    /// There is a record of something else.
    Mismatch,
    /// The record cannot be read.
    InvalidAdmission,
    /// There is a record that does not let it in.
    NotAdmitted,
    /// The record's time is over.
    Expired,
}

impl Admission {
    /// The name as it is written in files and on the screen.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Admitted => "admitted",
            Self::BuiltIn => "built_in",
            Self::NotApplicable => "not_applicable",
            Self::MissingAdmission => "missing_admission",
            Self::Mismatch => "mismatch",
            Self::InvalidAdmission => "invalid_admission",
            Self::NotAdmitted => "not_admitted",
            Self::Expired => "expired",
        }
    }
}

/// The state of the approval.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalStatus {
    /// The stage needs none.
    NotRequired,
    /// There is none.
    Missing,
    /// There is one, and the run ended before it used it.
    Granted,
    /// A person said no.
    Denied,
    /// Its time was over.
    Expired,
    /// There is one of something else.
    Void,
    /// Another run has used it.
    AlreadyConsumed,
    /// It was used by this run.
    Consumed,
}

/// The operator's word on the result. A pass is not an acceptance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OutcomeState {
    /// An operator has to accept or reject.
    Pending,
    /// The stage needs no outcome.
    NotRequired,
}

/// One path that broke one rule.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PathViolation {
    /// Where.
    pub path: RepoPath,
    /// Which rule.
    pub rule: PathRule,
    /// The detail, as text.
    pub detail: String,
}

/// The rules for changed paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PathRule {
    /// No pattern of `allowed_paths` matches.
    NotAllowed,
    /// A pattern of `forbidden_paths` or of the built-in list matches.
    Forbidden,
    /// A symbolic link leads out of the workspace.
    SymlinkEscape,
    /// A symbolic link gives it a name that is forbidden.
    ForbiddenAlias,
    /// Another path differs only in case.
    CaseTwin,
    /// A new name is not UTF-8, or has a character that readers do not see.
    UnprintableName,
    /// A FIFO, socket or device, or what herma may not read.
    SpecialFile,
    /// A repository inside the repository, by a `.git` in any spelling.
    NestedRepository,
    /// A directory that git takes for a bare repository.
    BareRepository,
    /// A submodule, or something inside one.
    Submodule,
    /// A file that Git LFS keeps: herma stores none there, so that a patch would put its content into the repository itself.
    LfsFile,
    /// Too large to be shown in a patch.
    TooLarge,
    /// A path that herma or git cannot handle, such as one that is too long.
    UnsupportedPath,
}

/// One verification command and how it ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Verification {
    /// As the contract says it.
    pub command: String,
    /// How it ended.
    pub status: VerificationStatus,
    /// Its exit code, where it exited by itself.
    pub exit_code: Option<i32>,
    /// Further facts about its end: the limit that it reached, or the component that ended it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The tracked files of the checkout that it changed, where it changed any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changed_files: Option<ChangedByCommand>,
    /// How long it took.
    pub duration_ms: u64,
}

/// The tracked files that a verification command changed, removed or replaced in its checkout.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ChangedByCommand {
    /// How many they are.
    pub count: u64,
    /// The first of them, at most 20.
    pub first: Vec<RepoPath>,
}

impl ChangedByCommand {
    /// How many paths are kept.
    pub const MAX_LISTED: usize = 20;

    /// The record of these paths; none where there are none.
    #[must_use]
    pub fn of(paths: &[&RepoPath]) -> Option<Self> {
        let first: Vec<RepoPath> = paths.iter().take(Self::MAX_LISTED).copied().cloned().collect();
        (!paths.is_empty()).then_some(Self { count: paths.len() as u64, first })
    }

    /// Whether it can be the record of what a command changed.
    #[must_use]
    pub fn is_consistent(&self) -> bool {
        let listed = self.first.len() as u64;
        self.count > 0 && listed == self.count.min(Self::MAX_LISTED as u64)
    }
}

/// As a message has it: how many, then the names.
impl fmt::Display for ChangedByCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<String> = self.first.iter().map(RepoPath::to_string).collect();
        let files = if self.count == 1 { "tracked file" } else { "tracked files" };
        write!(f, "{} {files}: {}", self.count, names.join(", "))?;
        match self.count.saturating_sub(self.first.len() as u64) {
            0 => Ok(()),
            more => write!(f, " and {more} more"),
        }
    }
}

/// How a verification command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum VerificationStatus {
    /// It exited with 0.
    Passed,
    /// It exited with something else, or was killed.
    Failed,
    /// The shell could not find or run it.
    CommandMissing,
    /// It took longer than the total limit.
    TimedOut,
    /// It exited with 0 and had changed tracked files of the checkout.
    ChangedFiles,
}

/// One file of the bundle.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Artifact {
    /// Its digest.
    pub sha256: Digest,
    /// Its size in bytes.
    pub size: u64,
    /// When herma finished writing it.
    pub written_at: Timestamp,
}

/// Whether all files were written inside the run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Freshness {
    /// The earliest `written_at`.
    pub oldest: Timestamp,
    /// The latest `written_at`.
    pub newest: Timestamp,
    /// Whether both lie between the run's start and its end.
    pub passed: bool,
}

impl ChildEnd {
    /// As its report says it; with nothing known where there is none.
    #[must_use]
    pub fn of_report(child: RunId, report: Option<&Report>) -> Self {
        let charged = report.and_then(|report| {
            let below = report.children.unwrap_or_default();
            (below.unknown == 0).then(|| report.usage.charged().plus(below.charged()))
        });
        Self { child, status: report.map(|report| report.status), charged }
    }
}
