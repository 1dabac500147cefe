//! The payload of each event type.
//!
//! A reader takes keys that it does not know, and bundles of earlier versions stay readable: a key is added as optional, and
//! none is renamed or removed.

use std::collections::BTreeSet;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::EventType;
pub use super::egress_data::{EgressDecided, EgressDecision};
use crate::approval::ApprovalId;
use crate::approver::ApproverName;
use crate::blocker::{Blocker, BlockerRecord};
use crate::child_end::ChildEnd;
use crate::content::MissingList;
use crate::contract::{Action, ContractId};
use crate::digest::Digest;
use crate::engine::{DestinationKind, EngineName};
use crate::gate::Gate;
use crate::id::RunId;
use crate::model_call::{Charge, Ended};
use crate::path::RepoPath;
use crate::report::{PathViolation, Verification};
use crate::stage::{MutationScope, Stage};
use crate::tool::ToolAction;
use crate::trust::TrustHead;
use crate::verdict::Status;

macro_rules! event_data {
    ($($name:ident: $payload:ty;)*) => {
        /// The payload of an event: one type for each event type.
        #[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
        #[serde(untagged)]
        pub enum EventData {
            $(
                #[doc = concat!("The payload of `", stringify!($name), "`.")]
                $name($payload),
            )*
        }

        impl EventData {
            /// The event type that this is the payload of.
            #[must_use]
            pub fn kind(&self) -> EventType {
                match self { $(Self::$name(_) => EventType::$name,)* }
            }

            /// Reads the payload of an event of this type.
            pub fn read(kind: EventType, data: Map<String, Value>) -> serde_json::Result<Self> {
                let data = Value::Object(data);
                match kind { $(EventType::$name => serde_json::from_value(data).map(Self::$name),)* }
            }
        }

        $(impl From<$payload> for EventData {
            fn from(payload: $payload) -> Self {
                Self::$name(payload)
            }
        })*
    };
}

event_data! {
    RunStarted: RunStarted;
    ContractCreated: ContractCreated;
    EligibilityDecided: EligibilityDecided;
    PlanUpdated: PlanUpdated;
    EngineGateBlocked: EngineGateBlocked;
    ApprovalRequested: ApprovalRequested;
    ApprovalGranted: ApprovalGranted;
    ApprovalDenied: ApprovalDenied;
    ApprovalConsumed: ApprovalConsumed;
    WorkspacePrepared: WorkspacePrepared;
    ConfinementProbed: ConfinementProbed;
    EngineStarted: EngineStarted;
    EngineMessage: EngineMessage;
    ToolEvaluated: ToolEvaluated;
    ModelCalled: ModelCalled;
    ChildEnded: ChildEnd;
    EgressDecided: EgressDecided;
    PatchApplied: PatchApplied;
    DiffChecked: DiffChecked;
    VerificationCompleted: VerificationCompleted;
    RunCompleted: RunCompleted;
}

impl EventData {
    /// The payload as the log holds it.
    #[must_use]
    pub fn to_map(&self) -> Map<String, Value> {
        match serde_json::to_value(self) {
            Ok(Value::Object(map)) => map,
            _ => Map::new(),
        }
    }
}

/// The `data` of a written event: its payload, or the value that replaces it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum WrittenData {
    /// The payload was too long.
    LeftOut {
        /// The size of the payload.
        left_out_bytes: u64,
    },
    /// The payload showed a secret.
    Withheld {
        /// The reason.
        withheld: String,
    },
    /// The payload.
    Data(Box<EventData>),
}

/// `run.started`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunStarted {
    /// The version of herma.
    pub herma_version: String,
    /// The engine.
    pub engine: EngineName,
    /// The destination.
    pub destination: DestinationKind,
    /// The contract's stage.
    pub stage: Stage,
    /// The head of the trust chain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trust_head: Option<TrustHead>,
    /// The run that asked for this one; only a child run has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_run: Option<RunId>,
    /// The number of runs above this one; only a child run has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub depth: Option<u8>,
}

/// `contract.created`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ContractCreated {
    /// The contract's name.
    pub contract_id: ContractId,
    /// The contract's digest.
    pub contract_digest: Digest,
    /// The contract's title.
    pub title: String,
}

/// `eligibility.decided`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EligibilityDecided {
    /// The decision in `decision.json`.
    pub decision_id: String,
    /// The digest of the engine that the gates judged.
    pub engine_digest: Option<Digest>,
    /// The engine that may start; none where a gate is missing.
    pub selected_engine: Option<EngineName>,
    /// The gates that do not hold.
    pub missing_gates: Vec<Gate>,
}

/// `plan.updated`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PlanUpdated {
    /// The items of the engine's plan.
    pub items: Vec<String>,
}

/// `engine.gate.blocked`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EngineGateBlocked {
    /// The engine.
    pub engine: EngineName,
    /// The gate that does not hold.
    pub gate: Gate,
    /// The reason.
    pub reason: String,
    /// The scope that the run would have had.
    pub mutation_scope: MutationScope,
    /// Whether the engine was started: never.
    pub engine_started: bool,
}

/// `approval.requested`. No run of this version records it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ApprovalRequested {
    /// The approval.
    pub approval_id: ApprovalId,
}

/// `approval.granted`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ApprovalGranted {
    /// The approval.
    pub approval_id: ApprovalId,
    /// The person who granted it.
    pub approver: Option<ApproverName>,
    /// The time of the ruling.
    pub at: Option<Timestamp>,
}

/// `approval.denied`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ApprovalDenied {
    /// The reason.
    pub reason: String,
}

/// `approval.consumed`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ApprovalConsumed {
    /// The approval.
    pub approval_id: ApprovalId,
}

/// `workspace.prepared`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WorkspacePrepared {
    /// The parentless commit of the base tree.
    pub baseline_commit: String,
    /// The base tree.
    pub baseline_tree: String,
    /// The number of files in it.
    pub files: usize,
    /// Submodules and Git LFS files of the base that the target does not have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing_content: Option<MissingList>,
    /// The session that the engine goes on with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resumed: Option<ResumedSession>,
}

/// The session of an earlier run that an engine goes on with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ResumedSession {
    /// The earlier run.
    pub run: RunId,
    /// The agent's name for the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// The message to the agent.
    pub message: String,
    /// The tree that the workspace starts with, where that is not the base tree.
    pub start_tree: Option<String>,
    /// The digest of paths, modes and blob ids of that tree, where it was read from the kept workspace of the earlier run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept_workspace: Option<Digest>,
}

/// `confinement.probed`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ConfinementProbed {
    /// The number of probes.
    pub probes: usize,
    /// The probes that got through, each with what was observed.
    pub broken: Vec<String>,
}

/// `engine.started`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EngineStarted {
    /// The engine.
    pub engine: EngineName,
    /// Its version.
    pub version: String,
}

/// `engine.message`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum EngineMessage {
    /// A message.
    Text {
        /// Its text.
        text: String,
    },
    /// The name of the engine's session.
    Session {
        /// The agent's name for it.
        session: String,
    },
    /// The token usage that the engine claims.
    Tokens {
        /// Tokens in.
        input_tokens: u64,
        /// Tokens out.
        output_tokens: u64,
    },
}

/// `tool.evaluated`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ToolEvaluated {
    /// The tool, by the agent's name for it; `witness` for a call that a PATH shim saw.
    pub tool: String,
    /// The command or the subject of the call.
    pub command: String,
    /// The action of the tool; none for a PATH shim.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<ToolAction>,
    /// The actions that the command would take outside.
    pub actions: Vec<Action>,
    /// Those of them that contract or admission forbid.
    pub forbidden: BTreeSet<Action>,
    /// The answer, where the agent asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub permission: Option<Permission>,
    /// The policies that decided, where the agent asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rules: Option<Vec<String>>,
    /// The asking side, where that is not the agent's dialogue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked_by: Option<AskedBy>,
    /// The reason of a denial.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The engine of a child run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine: Option<EngineName>,
    /// The child run, once it has a name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub child: Option<RunId>,
    /// The number of runs above the child.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub depth: Option<u8>,
}

/// The answer to a question about a tool call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Permission {
    /// The agent may.
    Allowed,
    /// The agent may not.
    Denied,
}

impl Permission {
    /// The answer that says whether the agent may.
    #[must_use]
    pub fn of(allowed: bool) -> Self {
        if allowed { Self::Allowed } else { Self::Denied }
    }
}

/// The side that asked about a tool call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AskedBy {
    /// The agent's tool hook.
    Hook,
    /// A herma inside the run.
    Herma,
}

/// `model.called`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum ModelCalled {
    /// One call.
    Call(ModelCallSummary),
    /// The calls after the last one with an event of its own.
    Rest {
        /// Their number.
        calls_without_an_event: u64,
    },
}

/// One model call, as `model-calls.jsonl` has it in full.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ModelCallSummary {
    /// The place in `model-calls.jsonl`, from 0.
    pub seq: u64,
    /// The model that the client asked for.
    pub asked: String,
    /// The model that says it answered.
    pub answered: Option<String>,
    /// The last upstream that was tried.
    pub upstream: Option<String>,
    /// The HTTP status that the client got; 0 if it left before there was one.
    pub status: u16,
    /// How the call ended.
    pub ended: Ended,
    /// The reason of a refusal or failure.
    pub reason: Option<String>,
    /// The charge.
    pub charged: Charge,
    /// Whether the charge is what the call cost.
    pub settled: bool,
}

/// `patch.applied`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PatchApplied {
    /// The tree of the result.
    pub result_tree: String,
    /// The commit of the result.
    pub result_commit: String,
    /// The number of changed files.
    pub changed: usize,
}

/// `diff.checked`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DiffChecked {
    /// The number of changed files.
    pub changed: usize,
    /// The path rules that changes break.
    pub violations: Vec<PathViolation>,
    /// The number of violations of forbidden paths.
    pub forbidden: usize,
    /// The forbidden actions that were attempted.
    pub forbidden_actions: Vec<Action>,
    /// The changed tests.
    pub changed_tests: Vec<RepoPath>,
    /// The changed files that decide what verification does.
    pub changed_verification_files: Vec<RepoPath>,
    /// Whether the result holds a secret.
    pub secret: bool,
}

/// `verification.completed`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct VerificationCompleted {
    /// Whether every command passed.
    pub passed: bool,
    /// Each command.
    pub commands: Vec<Verification>,
    /// Each command once more, with the tests of the baseline.
    pub with_baseline_tests: Vec<Verification>,
}

/// `run.completed`: the verdict.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunCompleted {
    /// The verdict's status.
    pub status: Status,
    /// The verdict's blockers, by name, in the report's order.
    pub blockers: Vec<Blocker>,
    /// The number of agent events above the limit.
    pub agent_events_left_out: u64,
}

impl RunCompleted {
    /// The verdict as the last event has it.
    #[must_use]
    pub fn new(status: Status, blockers: &[BlockerRecord], agent_events_left_out: u64) -> Self {
        Self { status, blockers: blockers.iter().map(|b| b.blocker).collect(), agent_events_left_out }
    }

    /// As an event's data.
    #[must_use]
    pub fn into_data(self) -> Map<String, Value> {
        EventData::from(self).to_map()
    }

    /// From an event's data; keys that others added are left alone.
    pub fn from_data(data: &Map<String, Value>) -> Result<Self, serde_json::Error> {
        serde_json::from_value(Value::Object(data.clone()))
    }
}
