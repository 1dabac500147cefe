//! Output of commands about policies.

use herma_core::Digest;
use herma_core::contract::Action;
use herma_core::tool::ToolAction;
use herma_policy::PolicyProblem;
use schemars::JsonSchema;
use serde::Serialize;

/// `herma policy check --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct PolicyCheckOutput {
    /// `herma.policy-check/v1`.
    pub schema: &'static str,
    /// The digest of all policies; none where something is wrong.
    pub digest: Option<Digest>,
    /// The rules that hold, herma's own first.
    pub rules: Vec<RuleItem>,
    /// The problems. No run starts until they are fixed.
    pub problems: Vec<PolicyProblem>,
}

/// A rule.
#[derive(Debug, Serialize, JsonSchema)]
pub struct RuleItem {
    /// Its `@id`.
    pub id: String,
    /// Its file.
    pub file: String,
    /// `forbid` or `permit`.
    pub effect: &'static str,
    /// Its `@reason`.
    pub reason: Option<String>,
}

/// `herma policy test --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct PolicyTestOutput {
    /// `herma.policy-test/v1`.
    pub schema: &'static str,
    /// Whether every case was decided as it expects.
    pub passed: bool,
    /// The cases, in order.
    pub cases: Vec<CaseItem>,
}

/// A case, and how it was decided.
#[derive(Debug, Serialize, JsonSchema)]
pub struct CaseItem {
    /// The purpose of the case.
    pub name: String,
    /// How it differs; none where it is as expected.
    pub difference: Option<String>,
    /// How it was decided.
    pub decision: DecisionItem,
}

/// How a tool call is decided.
#[derive(Debug, Serialize, JsonSchema)]
pub struct DecisionItem {
    /// Whether it may be made.
    pub allowed: bool,
    /// The rules that decide; none where nothing permits it.
    pub rules: Vec<RuleItem>,
    /// The outward actions that herma recognises in the call.
    pub does: Vec<Action>,
    /// The reason.
    pub reason: String,
}

/// `herma policy explain --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct PolicyExplainOutput {
    /// `herma.policy-explain/v1`.
    pub schema: &'static str,
    /// The action of the tool.
    pub action: ToolAction,
    /// The resource of the call.
    pub resource: String,
    /// How it is decided.
    pub decision: DecisionItem,
    /// The digest of the policies that decide.
    pub policy: Digest,
}
