//! The contract: the task an agent is given. A Markdown file with YAML front matter; the body is the brief.

mod action;
mod ad_hoc;
mod fields;
mod parse;
mod reference;
mod template;

pub(crate) use fields::number_or_text;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use crate::checked_text::Pattern;
pub use action::Action;
pub use ad_hoc::{AdHocContract, ad_hoc_contract};
pub use fields::{ContractId, FixtureName, Limits, ModelChoice, Patterns, RepoRef, Risk, Target, Toolchain};
pub use parse::{BadContract, MAX_BYTES};
pub use reference::{EnvironmentReference, PlacedReference};
pub use template::{FirstContract, first_contract, template};

use crate::capability::Capability;
use crate::digest::Digest;
use crate::engine::DestinationKind;
use crate::environment::{EnvironmentDefinition, ExpectBefore};
use crate::stage::{MutationScope, Stage};

/// A contract as it was written: front matter and brief.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contract {
    /// The front matter.
    pub terms: Terms,
    /// The body: the task for the engine.
    pub brief: String,
}

/// The front matter of a contract. Unknown keys are errors.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Terms {
    /// The contract's name: lower-case letters, digits, `.`, `_` and `-`.
    pub id: ContractId,
    /// The task in one line.
    pub title: String,
    /// The fixture or repository that the contract is about.
    pub target: Target,
    /// The stage of the run on the proof ladder.
    pub stage: Stage,
    /// The paths that may change: gitignore-style globs, at least one.
    pub allowed_paths: Patterns,
    /// The paths that may not change, added to the built-in list; deny wins over allow.
    #[serde(default)]
    pub forbidden_paths: Vec<Pattern>,
    /// Built-in forbidden paths that are lifted for this contract: the only way to lift one.
    #[serde(default)]
    pub lift_paths: Vec<Pattern>,
    /// Actions that are forbidden, added to the built-in list; no built-in one can be permitted.
    #[serde(default)]
    pub forbidden_actions: Vec<Action>,
    /// Shell commands that must exit with 0 on a fresh checkout with the patch.
    #[serde(default)]
    pub verify: Vec<String>,
    /// Whether the result may lean on tests, and on files that decide what verification does, that the engine rewrote. If not,
    /// a patch that changes some must also pass with them as they were.
    #[serde(default)]
    pub tests_may_change: bool,
    /// The properties that a reader of the result should find, in sentences.
    #[serde(default)]
    pub success: Vec<String>,
    /// Whether a run without a change is a failure.
    #[serde(default = "yes")]
    pub require_diff: bool,
    /// How much is at stake.
    #[serde(default)]
    pub risk: Risk,
    /// The person or system that asked for it.
    #[serde(default)]
    pub authority: Option<String>,
    /// How to take it back.
    #[serde(default)]
    pub rollback: Option<String>,
    /// How long and how much.
    #[serde(default)]
    pub limits: Limits,
    /// The model that the engine may use; without it the run needs none.
    #[serde(default)]
    pub model: Option<ModelChoice>,
    /// Where the engine runs; what a flag says, or what was chosen for the repository, or `sandbox`, if nothing is said.
    #[serde(default)]
    pub destination: Option<DestinationKind>,
    /// Hosts that the engine may reach through the egress proxy.
    #[serde(default)]
    pub egress: Vec<String>,
    /// Read-only mounts of what verification needs.
    #[serde(default)]
    pub toolchains: Vec<Toolchain>,
    /// Engine capabilities without which the run is blocked.
    #[serde(default)]
    pub needs: Vec<Capability>,
    /// The tools, packages and commands that make the project's own tests run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub environment: Option<EnvironmentDefinition>,
    /// The expected result of the verification commands on the base, before the engine starts.
    #[serde(default, skip_serializing_if = "ExpectBefore::is_any")]
    pub expect_before: ExpectBefore,
}

impl Terms {
    /// Whether the verification commands run on the base before the engine starts.
    #[must_use]
    pub fn has_preflight(&self) -> bool {
        self.environment.is_some() || !self.expect_before.is_any()
    }

    /// The scope that a run of this contract may change. Below stage 4 it is a copy, whatever the target is.
    #[must_use]
    pub fn mutation_scope(&self) -> MutationScope {
        match (self.stage, &self.target) {
            (Stage::Fixture | Stage::CopiedRepo, Target::Fixture(_)) => MutationScope::FixtureCopy,
            (Stage::Fixture | Stage::CopiedRepo, Target::Repo { .. }) => MutationScope::RepositoryCopy,
            (stage, _) => stage.mutation_scope(),
        }
    }
}

fn yes() -> bool {
    true
}

/// The canonical form, over which the digest is taken.
#[derive(Serialize)]
struct Canonical<'a> {
    schema: &'static str,
    terms: &'a Terms,
    brief: &'a str,
}

impl Contract {
    /// The canonical form: RFC 8785 JSON of the parsed front matter, defaults filled in, plus the exact brief.
    ///
    /// Two files that say the same in another order or with other comments have the same canonical form.
    pub fn canonical(&self) -> Result<Vec<u8>, serde_json::Error> {
        let canonical = Canonical { schema: "herma.contract/v1", terms: &self.terms, brief: &self.brief };
        serde_json_canonicalizer::to_vec(&canonical)
    }

    /// SHA-256 over the canonical form. Approvals, decisions and evidence name it.
    pub fn digest(&self) -> Result<Digest, serde_json::Error> {
        Ok(Digest::of(&self.canonical()?))
    }
}
