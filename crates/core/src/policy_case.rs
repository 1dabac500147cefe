//! Cases that a policy is tested by: `herma policy test`.

use serde::Deserialize;

use crate::contract::Action;
use crate::engine::EngineName;
use crate::stage::Stage;
use crate::tool::ToolAction;
pub use crate::yaml::BadYaml as BadCases;
use crate::yaml::{self, Page};

/// The largest file of cases.
const MAX_BYTES: u64 = 1 << 20;

const PAGE: Page = Page { part: "the file of cases", docs: "docs/policy.md" };

/// A file of cases.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PolicyCases {
    /// The cases, in order.
    pub cases: Vec<PolicyCase>,
}

/// A tool call, and what is to be decided about it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PolicyCase {
    /// The property that it shows.
    pub name: String,
    /// The engine; `fake` otherwise.
    #[serde(default = "EngineName::fake")]
    pub engine: EngineName,
    /// The contract's name.
    #[serde(default)]
    pub contract: String,
    /// The stage; 3 otherwise.
    #[serde(default = "usual_stage")]
    pub stage: Stage,
    /// The actions that the contract forbids, besides those that every contract forbids.
    #[serde(default)]
    pub forbidden: Vec<Action>,
    /// Whether the contract names a host.
    #[serde(default)]
    pub network: bool,
    /// The agent's name of the tool; the action's otherwise.
    pub tool: Option<String>,
    /// The engine of a child run, where the case is about one: its action is `spawn`, and what it is about is the name of the
    /// child's contract.
    pub child: Option<EngineName>,
    /// The action of the tool.
    pub action: ToolAction,
    /// The resource of the call.
    pub resource: String,
    /// The expected decision.
    pub expect: Expected,
    /// The rules that are to decide it, in the order of their names; any where nothing is said.
    pub rules: Option<Vec<String>>,
}

/// The expected decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Expected {
    /// It may be made.
    Allow,
    /// It may not.
    Deny,
}

fn usual_stage() -> Stage {
    Stage::CopiedRepo
}

impl PolicyCases {
    /// Reads a file of cases.
    pub fn parse(bytes: &[u8]) -> Result<Self, BadCases> {
        yaml::read(yaml::text(bytes, "a file of cases", MAX_BYTES)?, PAGE)
    }
}
