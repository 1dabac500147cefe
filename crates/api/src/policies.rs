//! Questions to the policies, and test cases of them.

use herma_core::contract::{Action, ContractId};
use herma_core::engine::EngineName;
use herma_core::policy_case::{Expected, PolicyCase};
use herma_core::tool::{ToolAction, ToolCall};
use herma_policy::{ChildRun, Policies, PolicyDecision, PolicyRequester, PolicyRule};

use crate::output::{CaseItem, DecisionItem, RuleItem};

/// A question that the policies cannot decide.
#[derive(Debug, thiserror::Error)]
pub enum QuestionError {
    /// The resource of a child run is not the id of a contract.
    #[error("a child run is named by its contract: {0}")]
    ChildName(String),
    /// A child run needs the action `spawn` and no tool.
    #[error("a child run is asked for by the action `spawn` and by no tool")]
    NotSpawn,
    /// The question of a test case.
    #[error("the case `{name}`: {source}")]
    Case {
        /// The name of the case.
        name: String,
        /// The problem of its question.
        source: Box<QuestionError>,
    },
}

impl QuestionError {
    /// The next step for the user.
    #[must_use]
    pub fn next_step(&self) -> &'static str {
        match self {
            Self::ChildName(_) => "name the `id` of the child's contract as the resource",
            Self::NotSpawn => "name no other action and no tool, or leave the child's engine out",
            Self::Case { source, .. } => source.next_step(),
        }
    }
}

/// A question to the policies: about a tool call, or about a child run with an engine.
#[derive(Clone, Copy, Debug)]
pub struct PolicyQuestion<'a> {
    /// The tool; that of the action otherwise.
    pub tool: Option<&'a str>,
    /// The action.
    pub action: ToolAction,
    /// The path, command, host, or the contract of a child run.
    pub resource: &'a str,
    /// The engine of a child run.
    pub child: Option<&'a EngineName>,
}

impl PolicyQuestion<'_> {
    /// The decision.
    pub fn decide(
        &self,
        policies: &Policies,
        requester: &PolicyRequester,
    ) -> Result<PolicyDecision, QuestionError> {
        let Self { tool, action, resource, child } = *self;
        let subject = resource.to_owned();
        match child {
            None => {
                let tool = tool.unwrap_or(action.as_str()).to_owned();
                Ok(policies.decide(requester, &ToolCall { tool, action, subject }))
            }
            Some(engine) if action == ToolAction::Spawn && tool.is_none() => {
                let named: ContractId = subject.parse().map_err(QuestionError::ChildName)?;
                let child = ChildRun { engine: engine.clone(), contract: named.into() };
                Ok(policies.decide_child(requester, &child))
            }
            Some(_) => Err(QuestionError::NotSpawn),
        }
    }
}

/// Decides a test case, and compares the decision with the expected one.
pub fn decide_case(policies: &Policies, case: PolicyCase) -> Result<CaseItem, QuestionError> {
    let requester = PolicyRequester {
        run: None,
        engine: case.engine,
        contract: case.contract,
        above: Vec::new(),
        stage: case.stage,
        forbidden: Action::BUILT_IN.into_iter().chain(case.forbidden).collect(),
        network: case.network,
    };
    let (tool, child) = (case.tool.as_deref(), case.child.as_ref());
    let question = PolicyQuestion { tool, action: case.action, resource: &case.resource, child };
    let decision = question
        .decide(policies, &requester)
        .map_err(|source| QuestionError::Case { name: case.name.clone(), source: Box::new(source) })?;
    let as_expected = decision.allowed == (case.expect == Expected::Allow);
    let difference = if as_expected {
        let by = |rules: &[String]| if rules.is_empty() { "no rule".to_owned() } else { rules.join(", ") };
        let other = case.rules.filter(|rules| *rules != decision.rules);
        other.map(|rules| format!("{} decides it, and not {}", by(&decision.rules), by(&rules)))
    } else {
        let word = if decision.allowed { "allowed" } else { "denied" };
        Some(format!("it is {word}: {}", decision.reason))
    };
    Ok(CaseItem { name: case.name, difference, decision: decision_item(policies, decision) })
}

/// A decision as output.
#[must_use]
pub fn decision_item(policies: &Policies, decision: PolicyDecision) -> DecisionItem {
    let rules = policies.rules().filter(|rule| decision.rules.contains(&rule.id)).map(rule_item).collect();
    DecisionItem { allowed: decision.allowed, rules, does: decision.does, reason: decision.reason }
}

/// A rule as output.
#[must_use]
pub fn rule_item(rule: &PolicyRule) -> RuleItem {
    RuleItem {
        id: rule.id.clone(),
        file: rule.file.clone(),
        effect: if rule.forbids { "forbid" } else { "permit" },
        reason: rule.reason.clone(),
    }
}
