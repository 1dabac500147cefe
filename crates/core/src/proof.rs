//! Proofs: records that an engine has passed a stage, bound to the engine's digest and to herma's version.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::blocker::Blocker;
use crate::capability::Capability;
use crate::digest::Digest;
use crate::engine::EngineName;
use crate::id::RunId;
use crate::report::NeverActivated;
use crate::signed::Signable;
use crate::stage::Stage;
use crate::verdict::Status;

/// The record of one proof; it is what `herma prove --json` prints. Only one with `status: pass` counts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Proof {
    /// `herma.proof/v1`.
    pub schema: ProofSchema,
    /// Whether the stage is proven.
    pub status: Status,
    /// Which stage.
    pub stage: Stage,
    /// Which engine.
    pub engine: EngineName,
    /// The digest of everything that the engine runs; none where that could not be taken.
    pub engine_digest: Option<Digest>,
    /// The version of herma.
    pub herma_version: String,
    /// When the proof was made.
    pub proven_at: Timestamp,
    /// The digest of the proof of the stage before; none for stage 1.
    pub prior: Option<Digest>,
    /// The stage's pass case and its failure classes, each with its result.
    pub rows: Vec<ProofRow>,
    /// The failure classes of the stage that this engine cannot have, each with the reason. They were not run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_applicable: Vec<NotApplicable>,
    /// The same contract on `fake`, in the same invocation.
    pub baseline: Option<BundleRef>,
    /// The engine against the baseline, criterion by criterion.
    pub comparison: Vec<Compared>,
    /// Every row of the failure matrix: covered by this proof, or not, with the reason.
    pub coverage: Vec<Coverage>,
    /// Every bundle that the proof is based on.
    pub bundles: Vec<BundleRef>,
    /// For stage 6: what makes the engine a candidate. Being one is evidence; it switches nothing.
    pub candidate: Option<Candidate>,
    /// Why the stage is not proven.
    pub reasons: Vec<String>,
    /// Always false: nothing in herma switches a default.
    pub runtime_default_activation: NeverActivated,
}

impl Signable for Proof {
    const KIND: &'static str = "herma.proof/v1";
}

/// The version of the proof's format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ProofSchema {
    /// The first version.
    #[serde(rename = "herma.proof/v1")]
    V1,
}

/// One case of a proof.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProofRow {
    /// The case: `pass`, or a failure class in the words of the ladder.
    pub case: String,
    /// The status that the run must end with.
    pub expected_status: Status,
    /// The blocker that it must end with; none for the pass case.
    pub expected_blocker: Option<Blocker>,
    /// Whether it ended as it must.
    pub held: bool,
    /// Its result, as text.
    pub detail: String,
    /// The run, where there was one.
    pub run_id: Option<RunId>,
}

/// A failure class that an engine cannot have, because it declares that it lacks what could fail.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NotApplicable {
    /// The failure class in the words of the ladder.
    pub case: String,
    /// The blocker that a run of it would have to end with.
    pub expected_blocker: Blocker,
    /// The capability that the engine declares as unsupported.
    pub lacks: Capability,
    /// The same, as text.
    pub reason: String,
}

/// A bundle that a proof is based on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BundleRef {
    /// The run that left it.
    pub run_id: RunId,
    /// The engine of that run.
    pub engine: EngineName,
    /// Its role in the proof.
    pub case: String,
    /// The digest of its `attestation.json`, which names every other file.
    pub attestation: Digest,
    /// The digest of its `outcome.json`, where the proof leans on one.
    pub outcome: Option<Digest>,
}

/// One row of the failure matrix in one proof.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Coverage {
    /// The row.
    pub blocker: Blocker,
    /// Whether a run of this proof brought it about.
    pub state: CoverageState,
    /// The run that did, or why none did.
    pub reason: String,
}

/// Whether a row of the failure matrix was brought about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CoverageState {
    /// A run brought it about, and it ended as it must.
    Covered,
    /// It was not brought about, for the reason that is given.
    Blocked,
    /// The engine cannot have it: the reason names the capability that it lacks.
    NotApplicable,
}

/// One criterion on which lanes are compared.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Compared {
    /// Which criterion.
    pub criterion: Criterion,
    /// The rank of the engine against the other lane.
    pub standing: Standing,
    /// The reason, as text.
    pub detail: String,
}

/// The criteria of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Criterion {
    /// The report has the same shape: the same keys are there, the same are null.
    ReportShape,
    /// Every required event is there, in order, and the chain holds.
    EventValidity,
    /// Nothing but allowed paths changed.
    PathCompliance,
    /// Failures were closed with the right blocker.
    FailureClosure,
    /// Every file of the bundle is there or has its reason, and the bundle verifies.
    ArtifactCompleteness,
    /// The verification commands passed.
    Verification,
    /// How long it took.
    Time,
    /// How many tokens it used.
    Tokens,
    /// Its cost.
    Cost,
    /// Whether repetitions came to the same.
    Repeatability,
}

impl Criterion {
    /// The five that decide on eligibility.
    pub const DECIDING: [Self; 5] = [
        Self::ReportShape,
        Self::EventValidity,
        Self::PathCompliance,
        Self::FailureClosure,
        Self::ArtifactCompleteness,
    ];

    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::ReportShape,
        Self::EventValidity,
        Self::PathCompliance,
        Self::FailureClosure,
        Self::ArtifactCompleteness,
        Self::Verification,
        Self::Time,
        Self::Tokens,
        Self::Cost,
        Self::Repeatability,
    ];

    /// The name as it is written in files and on the screen.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ReportShape => "report_shape",
            Self::EventValidity => "event_validity",
            Self::PathCompliance => "path_compliance",
            Self::FailureClosure => "failure_closure",
            Self::ArtifactCompleteness => "artifact_completeness",
            Self::Verification => "verification",
            Self::Time => "time",
            Self::Tokens => "tokens",
            Self::Cost => "cost",
            Self::Repeatability => "repeatability",
        }
    }
}

/// The rank of one lane against another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// As good.
    Matches,
    /// Better.
    Beats,
    /// Worse.
    FallsBehind,
    /// It cannot be said, because one of the two could not run.
    Blocked,
}

/// The conditions that make an engine a candidate for the default.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Candidate {
    /// Whether it matches or beats every other lane on the five deciding criteria.
    pub eligible: bool,
    /// The comparison that this was drawn from.
    pub comparison: String,
    /// How often each contract was repeated.
    pub repetitions: u32,
    /// When the oldest evidence was made.
    pub oldest_evidence: Timestamp,
    /// The accepted stage 5 runs, of different contracts.
    pub accepted: Vec<RunId>,
    /// Lanes that could not run, each with its reason.
    pub blocked_lanes: Vec<String>,
}
