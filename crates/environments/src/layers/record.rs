//! The record of a layer.

use herma_core::{Digest, RepoPath, Timestamp};
use serde::{Deserialize, Serialize};

use super::tree::TreeSummary;
use crate::egress_record::EgressRecord;
use crate::inputs::InputDigest;
use crate::key::{LayerKey, ToolIdentity};

/// Which commands made a layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LayerKind {
    /// The fetch commands.
    Fetch,
    /// The setup commands, on top of a fetch layer.
    Setup,
}

/// A command of a build.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RanCommand {
    /// The command.
    pub command: String,
    /// How long it took.
    pub duration_ms: u64,
}

/// The record of a layer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LayerRecord {
    /// The layer's key.
    pub key: LayerKey,
    /// Which commands made it.
    pub kind: LayerKind,
    /// The fetch layer below a setup layer.
    pub fetch_key: Option<LayerKey>,
    /// The digest of the definition.
    pub definition: Digest,
    /// The inputs at the base.
    pub inputs: Vec<InputDigest>,
    /// The tools.
    pub tools: Vec<ToolIdentity>,
    /// The destination.
    pub destination: String,
    /// The machine's architecture.
    pub architecture: String,
    /// The base tree, where code of it ran.
    pub base_tree: Option<String>,
    /// Whether the fetch commands saw the whole tree.
    pub source_and_network: bool,
    /// The commands that ran.
    pub commands: Vec<RanCommand>,
    /// The decisions of the egress proxy.
    pub egress: Vec<EgressRecord>,
    /// Untracked files that are not part of the layer: git does not ignore them, and `cache` does not name them.
    pub left_out: Vec<RepoPath>,
    /// The time of the whole build.
    pub duration_ms: u64,
    /// When it was built.
    pub built_at: Timestamp,
    /// Its files.
    pub tree: TreeSummary,
}
