//! Output of the guided set-up.

use herma_core::Digest;
use herma_core::admission::AdmissionKind;
use herma_core::engine::EngineName;
use schemars::JsonSchema;
use serde::Serialize;

/// `herma quickstart --json`.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct QuickstartOutput {
    /// `herma.quickstart/v1`.
    pub schema: &'static str,
    /// The engine that is set up.
    pub engine: EngineName,
    /// Whether `herma do` can run with it now.
    pub ready: bool,
    /// The state of the machine and the installation before the first step.
    pub inspection: Vec<QuickstartFinding>,
    /// The steps, in order.
    pub steps: Vec<QuickstartStep>,
    /// The records to be signed and their code; none where nothing has to be signed.
    pub page: Option<QuickstartPage>,
    /// The next command.
    pub next_step: String,
}

/// Something that was looked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct QuickstartFinding {
    /// Its name.
    pub name: &'static str,
    /// Whether it is there.
    pub found: bool,
    /// Which, or what is missing.
    pub detail: String,
    /// The command's action; none where nothing has to be done.
    pub plan: Option<String>,
}

/// A step of the set-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum QuickstartStepName {
    /// The person whose signature counts.
    Approver,
    /// The agent's program.
    Agent,
    /// The model and the credential for it.
    Model,
    /// The signature over every record.
    Admit,
    /// The proof of stages 1 to 3.
    Prove,
    /// The repository's environment and its tests.
    Repository,
}

impl QuickstartStepName {
    /// The name as it is written.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Approver => "approver",
            Self::Agent => "agent",
            Self::Model => "model",
            Self::Admit => "admit",
            Self::Prove => "prove",
            Self::Repository => "repository",
        }
    }
}

/// The result of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum QuickstartState {
    /// This command did it.
    Done,
    /// It was done before.
    Current,
    /// It was left for later, because this is a dry run.
    Planned,
    /// It does not apply here.
    Skipped,
}

impl QuickstartState {
    /// The name as it is written.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Current => "current",
            Self::Planned => "planned",
            Self::Skipped => "skipped",
        }
    }
}

/// A step and its result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct QuickstartStep {
    /// Which step.
    pub step: QuickstartStepName,
    /// Its result.
    pub state: QuickstartState,
    /// Actions and findings, line by line.
    pub detail: Vec<String>,
    /// The command that does this step alone; none where nothing has to be done.
    pub command: Option<String>,
}

/// The records that one code signs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct QuickstartPage {
    /// The code that a person types, or passes as `--code`.
    pub code: String,
    /// The digest over the list of the records' digests; the code is its start.
    pub digest: Digest,
    /// The records.
    pub records: Vec<QuickstartRecord>,
}

/// A record to be signed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct QuickstartRecord {
    /// Its kind.
    pub kind: AdmissionKind,
    /// Its subject.
    pub name: String,
    /// The digest of its text.
    pub digest: Digest,
    /// Its text: the exact bytes that are signed.
    pub text: String,
}
