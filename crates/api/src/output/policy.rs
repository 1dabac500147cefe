//! What commands about policies print.

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
    /// What is wrong. Until it is mended no run starts.
    pub problems: Vec<PolicyProblem>,
}

/// A rule.
#[derive(Debug, Serialize, JsonSchema)]
pub struct RuleItem {
    /// Its `@id`.
    pub id: String,
    /// The file that it stands in.
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
    /// What it shows.
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
    /// What herma reads in it that it would do to the world.
    pub does: Vec<Action>,
    /// Why, in words.
    pub reason: String,
}

/// `herma policy explain --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct PolicyExplainOutput {
    /// `herma.policy-explain/v1`.
    pub schema: &'static str,
    /// What the tool does.
    pub action: ToolAction,
    /// What the call is about.
    pub resource: String,
    /// How it is decided.
    pub decision: DecisionItem,
    /// The digest of the policies that decide.
    pub policy: Digest,
}
