//! The event log of a run, one JSON object a line, each chained to the one before.

mod data;
mod egress_data;

use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::digest::Digest;
use crate::id::RunId;
use crate::stage::Stage;
use crate::verdict::Status;

pub use data::{
    ApprovalConsumed, ApprovalDenied, ApprovalGranted, ApprovalRequested, AskedBy, ConfinementProbed,
    ContractCreated, DiffChecked, EgressDecided, EgressDecision, EligibilityDecided, EngineGateBlocked,
    EngineMessage, EngineStarted, EventData, ModelCallSummary, ModelCalled, PatchApplied, Permission,
    PlanUpdated, ResumedSession, RunCompleted, RunStarted, ToolEvaluated, VerificationCompleted,
    WorkspacePrepared, WrittenData,
};

macro_rules! event_types {
    ($($name:ident $text:literal $doc:literal;)*) => {
        /// The type of an event.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
        pub enum EventType {
            $(#[doc = $doc] #[serde(rename = $text)] $name,)*
        }

        impl EventType {
            /// Every type of event.
            pub const ALL: &[Self] = &[$(Self::$name),*];

            /// The name as it is written in files and on the screen.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }

            /// Its meaning, in one sentence.
            #[must_use]
            pub fn summary(self) -> &'static str {
                match self { $(Self::$name => $doc,)* }
            }
        }
    };
}

event_types! {
    RunStarted "run.started" "The run exists.";
    ContractCreated "contract.created" "The contract was parsed and its digest taken.";
    EligibilityDecided "eligibility.decided" "Every gate was evaluated; `decision.json` holds the result.";
    PlanUpdated "plan.updated" "The engine told its plan.";
    EngineGateBlocked "engine.gate.blocked" "A gate does not hold, so the engine was not started.";
    ApprovalRequested "approval.requested" "A person was asked for an approval.";
    ApprovalGranted "approval.granted" "A person approved this contract.";
    ApprovalDenied "approval.denied" "A person denied this contract.";
    ApprovalConsumed "approval.consumed" "The approval was used by this run.";
    WorkspacePrepared "workspace.prepared" "The workspace holds one parentless commit of the base tree.";
    ConfinementProbed "confinement.probed" "The probes ran inside the destination; `confinement.json` holds them.";
    EngineStarted "engine.started" "The engine's process was started in the destination.";
    EngineMessage "engine.message" "The engine said something.";
    ToolEvaluated "tool.evaluated" "A tool call that the engine reported or asked about, or that a witness saw, was judged.";
    ModelCalled "model.called" "The engine called a model through the router.";
    ChildEnded "child.ended" "A child run ended; what it was charged for models counts against this run's budget.";
    EgressDecided "egress.decided" "A connection was allowed or denied.";
    PatchApplied "patch.applied" "The engine is dead, its tree was walked, hashed and recorded as one commit.";
    DiffChecked "diff.checked" "Every changed path and every reported action was judged.";
    VerificationCompleted "verification.completed" "The verification commands ran on a fresh checkout with the patch.";
    RunCompleted "run.completed" "The verdict.";
}

impl fmt::Display for EventType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for EventType {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL
            .iter()
            .copied()
            .find(|t| t.as_str() == text)
            .ok_or_else(|| format!("`{text}` is not a type of event"))
    }
}

/// The source of an event. Only harness events satisfy requirements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// herma itself saw it.
    Harness,
    /// The agent said it.
    Agent,
}

/// One line of `events.jsonl`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Event {
    /// 0 for the first line, then one more for each.
    pub seq: u64,
    /// When herma wrote it.
    pub ts: Timestamp,
    /// The run it belongs to.
    pub run_id: RunId,
    /// Its source.
    pub source: Source,
    /// Its type.
    #[serde(rename = "type")]
    pub kind: EventType,
    /// The payload; its keys depend on the type.
    #[schemars(with = "WrittenData")]
    pub data: Map<String, Value>,
    /// SHA-256 of the previous line without its newline; of nothing for the first.
    pub prev: Digest,
}

impl Event {
    /// Its typed payload; an error where that was left out, withheld, or written by a version with other keys.
    pub fn payload(&self) -> serde_json::Result<EventData> {
        EventData::read(self.kind, self.data.clone())
    }

    /// Its shortest informative text, for a line of progress; empty where it has none.
    #[must_use]
    pub fn note(&self) -> String {
        note(&self.data)
    }
}

/// The shortest informative text of an event's data.
#[must_use]
pub fn note(data: &Map<String, Value>) -> String {
    for key in ["reason", "text", "command", "status", "changed", "selected_engine"] {
        match data.get(key) {
            Some(Value::String(text)) => return text.clone(),
            Some(Value::Number(number)) => return number.to_string(),
            _ => {}
        }
    }
    String::new()
}

/// How a run ended, as far as that decides which events it must have left.
#[derive(Clone, Copy, Debug)]
pub struct EndSummary {
    /// The contract's stage.
    pub stage: Stage,
    /// The verdict's status.
    pub status: Status,
    /// Whether the engine's process was started.
    pub engine_started: bool,
    /// Whether the destination confined it.
    pub confined: bool,
}

/// The harness events that a run with this end must have left, in this order.
#[must_use]
pub fn required(ended: EndSummary) -> Vec<EventType> {
    use EventType as E;
    let EndSummary { stage, status, engine_started, confined } = ended;
    let passed = status == Status::Pass;
    let mut events = vec![E::RunStarted, E::ContractCreated];
    if passed || engine_started {
        events.extend(confined.then_some(E::ConfinementProbed));
        if stage.needs_approval() {
            events.extend([E::ApprovalGranted, E::ApprovalConsumed]);
        }
        events.push(E::EligibilityDecided);
    }
    if engine_started || (passed && stage.starts_engine()) {
        events.extend([E::WorkspacePrepared, E::EngineStarted]);
    }
    if passed && stage.starts_engine() {
        events.extend([E::PatchApplied, E::DiffChecked, E::VerificationCompleted]);
    }
    events.push(E::RunCompleted);
    events
}

/// The first of `required` that `events` lack, or have only before an earlier one.
pub fn first_missing<'a>(
    required: &[EventType],
    events: impl IntoIterator<Item = &'a Event>,
) -> Option<EventType> {
    let mut wanted = required.iter().copied().peekable();
    for event in events {
        if event.source == Source::Harness && wanted.peek() == Some(&event.kind) {
            wanted.next();
        }
    }
    wanted.next()
}
