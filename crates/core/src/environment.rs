//! The environment of a contract: which tools, packages and commands make a project's own tests run.

mod fields;
mod parse;
mod record;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use fields::{
    CachePattern, ExpectBefore, History, InputPattern, Registry, SetupOn, ToolRequest, ToolVersion,
};
pub(crate) use parse::DefinitionPositions;
pub use parse::{BadEnvironment, DefinitionRules, MAX_BYTES};
pub use record::{
    BaseResult, CommandRecord, EnvironmentFailure, EnvironmentRecord, EnvironmentSchema, EnvironmentUse,
    HistoryRecord, InputRecord, LayerBuildRecord, LayerName, PreflightRecord, RebuildRecord, RebuiltUse,
    RegistryDecision, ToolRecord,
};

use crate::digest::Digest;

/// The definition of an environment. Unknown keys are errors.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EnvironmentDefinition {
    /// Programs of the machine, mounted read-only: `node`, or `node@22` for a version that starts with 22.
    #[serde(default)]
    pub tools: Vec<ToolRequest>,
    /// Shell commands that fetch packages, with egress to `registries` only, in a tree that holds only `inputs`.
    #[serde(default)]
    pub fetch: Vec<String>,
    /// Shell commands that run after them without network.
    #[serde(default)]
    pub setup: Vec<String>,
    /// The tree that `setup` runs on: `base`, or `inputs` if the commands need no other file.
    #[serde(default)]
    pub setup_on: SetupOn,
    /// The package registries that `fetch` may reach.
    #[serde(default)]
    pub registries: Vec<Registry>,
    /// The files that decide what is fetched: gitignore-style patterns from the repository's root. Detected if absent.
    #[serde(default)]
    pub inputs: Option<Vec<InputPattern>>,
    /// Variables for every command. No secrets.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// Untracked paths of the checkout that are part of the environment, beside those that git ignores.
    #[serde(default)]
    pub cache: Vec<CachePattern>,
    /// Whether a patch that changes an input, such as a lock file, has an environment built for it.
    #[serde(default)]
    pub rebuild: bool,
    /// How much git history the workspace and the checkout have.
    #[serde(default)]
    pub history: History,
}

#[derive(Serialize)]
struct Canonical<'a> {
    schema: &'static str,
    environment: &'a EnvironmentDefinition,
}

impl EnvironmentDefinition {
    /// The canonical form: RFC 8785 JSON with defaults filled in.
    pub fn canonical(&self) -> Result<Vec<u8>, serde_json::Error> {
        serde_json_canonicalizer::to_vec(&Canonical { schema: "herma.environment/v1", environment: self })
    }

    /// SHA-256 over the canonical form.
    pub fn digest(&self) -> Result<Digest, serde_json::Error> {
        Ok(Digest::of(&self.canonical()?))
    }

    /// Whether the fetch commands see the whole tree, so that source and network are together.
    #[must_use]
    pub fn has_source_and_network(&self) -> bool {
        let all = |input: &InputPattern| matches!(input.as_str(), "**" | "*" | "**/*");
        !self.fetch.is_empty() && self.inputs.iter().flatten().any(all)
    }
}
