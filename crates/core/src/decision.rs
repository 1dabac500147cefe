//! The eligibility decision: may this engine start on this contract?

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::blocker::{Blocker, BlockerRecord};
use crate::contract::{ContractId, Risk};
use crate::digest::Digest;
use crate::engine::EngineName;
use crate::gate::{Finding, Gate};
use crate::report::Admission;
use crate::stage::{MutationScope, Stage};

/// The decision as it is in `decision.json`. herma makes it; no engine ever makes or changes one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Decision {
    /// `herma.decision/v1`.
    pub schema: DecisionSchema,
    /// `decision-` and the run's name: one run has one decision.
    pub decision_id: String,
    /// The contract's name.
    pub contract_id: ContractId,
    /// The contract's digest.
    pub contract_digest: Digest,
    /// The engine that may start; none where a gate is missing.
    pub selected_engine: Option<EngineName>,
    /// Engines that may not start, each with its reasons.
    pub denied_engines: BTreeMap<String, Vec<String>>,
    /// The purpose of the run: only a proof may start an engine on a stage that it has not proven yet.
    pub purpose: Purpose,
    /// The records that were looked at, with their digests.
    pub admissions: Vec<AdmissionSeen>,
    /// The contract's risk.
    pub risk: Risk,
    /// Every gate that this run has to pass.
    pub required_gates: Vec<Gate>,
    /// The gates that hold.
    pub passed_gates: Vec<Gate>,
    /// The gates that do not hold, all of them.
    pub missing_gates: Vec<MissingGate>,
    /// The gates that were not reached; that blocks.
    pub not_evaluated: Vec<Gate>,
    /// The gates that do not apply to this run, with the reason.
    pub not_applicable: BTreeMap<String, String>,
    /// The scope that the run may change.
    pub allowed_mutation_scope: MutationScope,
    /// Whether a person's approval is needed.
    pub approval_required: bool,
    /// The decision in sentences.
    pub reasons: Vec<String>,
    /// The people to ask, or the steps to take, if it blocks.
    pub escalation_path: Vec<String>,
}

/// The version of the decision's format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum DecisionSchema {
    /// The first version.
    #[serde(rename = "herma.decision/v1")]
    V1,
}

/// The purpose of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// The contract's work.
    #[default]
    Work,
    /// A case of `herma prove`, in a repository that herma made for it.
    Proof,
}

impl Purpose {
    /// The name as it is written in files and on the screen.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Work => "work",
            Self::Proof => "proof",
        }
    }
}

/// A record by which a person permits something, as a decision saw it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AdmissionSeen {
    /// `engine`, `model` or `target`.
    pub kind: String,
    /// The name of the admitted thing.
    pub name: String,
    /// Its result.
    pub status: Admission,
    /// The digest of the record's file, where there is one.
    pub digest: Option<Digest>,
}

/// A gate that does not hold.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MissingGate {
    /// Which one.
    pub gate: Gate,
    /// The blocker that it leads to.
    pub blocker: Blocker,
    /// The missing thing.
    pub reason: String,
    /// The next step for a person.
    pub next_step: String,
}

impl MissingGate {
    fn new(gate: Gate, because: BlockerRecord) -> Self {
        let BlockerRecord { blocker, detail, next_step } = because;
        Self { gate, blocker, reason: detail, next_step }
    }

    /// The blocker that the run has because of this gate.
    #[must_use]
    pub fn record(&self) -> BlockerRecord {
        BlockerRecord {
            blocker: self.blocker,
            detail: format!("gate {}: {}", self.gate.as_str(), self.reason),
            next_step: self.next_step.clone(),
        }
    }
}

/// The input of a decision.
#[derive(Clone, Debug)]
pub struct DecisionInput<'a> {
    /// Becomes part of the decision's name.
    pub run_id: crate::RunId,
    /// The contract's name.
    pub contract_id: &'a ContractId,
    /// The contract's digest.
    pub contract_digest: Digest,
    /// The engine that was named, or the default.
    pub engine: &'a EngineName,
    /// The contract's stage.
    pub stage: Stage,
    /// The scope that the run may change.
    pub mutation_scope: MutationScope,
    /// The contract's risk.
    pub risk: Risk,
    /// The purpose of the run.
    pub purpose: Purpose,
    /// The records that were looked at.
    pub admissions: Vec<AdmissionSeen>,
}

impl Decision {
    /// Draws the decision from the findings. A gate without a finding was not evaluated.
    #[must_use]
    pub fn draw(input: &DecisionInput<'_>, findings: &BTreeMap<Gate, Finding>) -> Self {
        let mut decision = Self {
            schema: DecisionSchema::V1,
            decision_id: format!("decision-{}", input.run_id),
            contract_id: input.contract_id.clone(),
            contract_digest: input.contract_digest,
            selected_engine: None,
            denied_engines: BTreeMap::new(),
            purpose: input.purpose,
            admissions: input.admissions.clone(),
            risk: input.risk,
            required_gates: Vec::new(),
            passed_gates: Vec::new(),
            missing_gates: Vec::new(),
            not_evaluated: Vec::new(),
            not_applicable: BTreeMap::new(),
            allowed_mutation_scope: input.mutation_scope,
            approval_required: input.stage.needs_approval(),
            reasons: Vec::new(),
            escalation_path: Vec::new(),
        };
        for gate in Gate::ALL {
            match findings.get(&gate) {
                Some(Finding::NotApplicable(reason)) => {
                    decision.not_applicable.insert(gate.as_str().to_owned(), reason.clone());
                    continue;
                }
                Some(Finding::Passed) => decision.passed_gates.push(gate),
                Some(Finding::Missing(because)) => {
                    decision.reasons.push(format!("{}: {}", gate.as_str(), because.detail));
                    decision.escalation_path.push(because.next_step.clone());
                    decision.missing_gates.push(MissingGate::new(gate, because.clone()));
                }
                None => decision.not_evaluated.push(gate),
            }
            decision.required_gates.push(gate);
        }
        if decision.is_eligible() {
            decision.reasons.push(format!("all {} required gates hold", decision.required_gates.len()));
            decision.selected_engine = Some(input.engine.clone());
        } else {
            decision.denied_engines.insert(input.engine.to_string(), decision.reasons.clone());
        }
        decision
    }

    /// Whether the engine may start: every required gate was evaluated and holds.
    #[must_use]
    pub fn is_eligible(&self) -> bool {
        self.missing_gates.is_empty() && self.not_evaluated.is_empty()
    }
}
