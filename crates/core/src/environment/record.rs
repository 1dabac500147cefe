//! The record of a run's environment, as it is in `environment.json`, and the part of it that the report repeats.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::EnvironmentDefinition;
use crate::digest::Digest;
use crate::path::RepoPath;

/// The environment of a run, in its report. `environment.json` has the whole.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EnvironmentUse {
    /// The digest of the definition.
    pub definition: Digest,
    /// The keys of the layers: fetch first, then setup where there are setup commands.
    pub layers: Vec<Digest>,
    /// The digest of the files that the run got a copy of.
    pub tree: Digest,
    /// The environment that verification used in its place, where the patch changed an input.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rebuilt: Option<RebuiltUse>,
}

/// The environment that was built for a patch, as the report names it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RebuiltUse {
    /// The keys of the layers.
    pub layers: Vec<Digest>,
    /// The digest of the files that verification got a copy of.
    pub tree: Digest,
}

/// How a verification command ended on the untouched base.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "result", rename_all = "snake_case", deny_unknown_fields)]
pub enum BaseResult {
    /// It passed.
    Passed {
        /// The command.
        command: String,
    },
    /// It ran and failed.
    Failed {
        /// The command.
        command: String,
        /// Its exit code.
        exit_code: Option<i32>,
    },
    /// It could not run.
    Unrunnable {
        /// The command.
        command: String,
        /// The likely reason.
        reason: String,
        /// The fix.
        fix: String,
    },
}

impl BaseResult {
    /// The command.
    #[must_use]
    pub fn command(&self) -> &str {
        match self {
            Self::Passed { command } | Self::Failed { command, .. } | Self::Unrunnable { command, .. } => {
                command
            }
        }
    }
}

/// The version of the record's format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum EnvironmentSchema {
    /// The first version.
    #[serde(rename = "herma.environment/v1")]
    V1,
}

/// `environment.json`: how the environment of a run was built, and what the verification commands did on the base.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EnvironmentRecord {
    /// `herma.environment/v1`.
    pub schema: EnvironmentSchema,
    /// The definition, as the contract has it; none where the contract only has `expect_before`.
    pub definition: Option<EnvironmentDefinition>,
    /// Its digest.
    pub definition_digest: Option<Digest>,
    /// The git history that the workspace and the checkouts had, where the definition gives them some.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub history: Option<HistoryRecord>,
    /// The layers: fetch first, then setup.
    pub layers: Vec<LayerBuildRecord>,
    /// Why it could not be built.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<EnvironmentFailure>,
    /// The verification commands on the base; none where the environment could not be built.
    pub preflight: Option<PreflightRecord>,
    /// The environment that was built again for the patch, where the contract permits it and the patch changes an input.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rebuilt: Option<RebuildRecord>,
}

/// The git history of the base, as workspaces and checkouts have it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HistoryRecord {
    /// The base commit, with which it ends.
    pub commit: String,
    /// Whether it begins later than the repository: by the definition, or because the repository is a shallow clone.
    pub is_shallow: bool,
    /// The number of tags that point into it.
    pub tags: usize,
    /// The digest over commit, depth and tags.
    pub digest: Digest,
}

/// An environment that was built again for a patch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RebuildRecord {
    /// The inputs that the patch changed.
    pub changed_inputs: Vec<RepoPath>,
    /// The layers; none if they could not be built.
    pub layers: Vec<LayerBuildRecord>,
    /// Why it could not be built.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<EnvironmentFailure>,
}

/// A build that failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EnvironmentFailure {
    /// The failure, in a sentence.
    pub message: String,
    /// The last lines of the command, without secrets.
    pub last_lines: Vec<String>,
    /// The hosts that it was denied.
    pub denied: Vec<String>,
    /// Every decision of the egress proxy.
    pub egress: Vec<RegistryDecision>,
}

/// The verification commands on the base.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PreflightRecord {
    /// Whether an earlier run has run them, on the same base in the same environment.
    pub reused: bool,
    /// How each ended.
    pub results: Vec<BaseResult>,
    /// The last lines of the command that failed first, without secrets.
    pub last_lines: Vec<String>,
}

/// How a layer of an environment was built.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LayerBuildRecord {
    /// `fetch` or `setup`.
    pub kind: LayerName,
    /// Its key: a digest of everything that decides its content.
    pub key: Digest,
    /// Whether it was there already.
    pub reused: bool,
    /// The inputs at the base.
    pub inputs: Vec<InputRecord>,
    /// The tools.
    pub tools: Vec<ToolRecord>,
    /// The destination.
    pub destination: String,
    /// The machine's architecture.
    pub architecture: String,
    /// The base tree, where its code ran.
    pub base_tree: Option<String>,
    /// Whether the fetch commands saw the whole tree.
    pub source_and_network: bool,
    /// The commands that ran.
    pub commands: Vec<CommandRecord>,
    /// The decisions of the egress proxy.
    pub egress: Vec<RegistryDecision>,
    /// Untracked files that are not part of the layer.
    pub left_out: Vec<RepoPath>,
    /// The time of the whole build.
    pub duration_ms: u64,
    /// When it was built.
    pub built_at: Timestamp,
    /// The digest of its files.
    pub tree: Digest,
    /// The bytes of its files.
    pub bytes: u64,
    /// The number of its files.
    pub files: u64,
}

/// Which commands made a layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LayerName {
    /// The fetch commands.
    Fetch,
    /// The setup commands.
    Setup,
}

/// An input of an environment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct InputRecord {
    /// Its path.
    pub path: RepoPath,
    /// Its mode, as git writes it.
    pub mode: String,
    /// The digest of its content.
    pub digest: Digest,
}

/// A tool of an environment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ToolRecord {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// The digest of its program.
    pub digest: Digest,
}

/// A command of a build.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CommandRecord {
    /// The command.
    pub command: String,
    /// How long it took.
    pub duration_ms: u64,
}

/// Equal decisions of a build's egress proxy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RegistryDecision {
    /// The host.
    pub host: String,
    /// The port.
    pub port: u16,
    /// `allowed`, or the reason of the denial or failure.
    pub verdict: String,
    /// How often.
    pub count: u64,
}
