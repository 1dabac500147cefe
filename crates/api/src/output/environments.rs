//! Output of commands about environments.

use herma_core::environment::LayerBuildRecord;
use herma_core::{Digest, Timestamp};
use schemars::JsonSchema;
use serde::Serialize;

/// `herma env list --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct EnvironmentsOutput {
    /// `herma.environments/v1`.
    pub schema: &'static str,
    /// The layers, the least recently used first.
    pub layers: Vec<LayerRow>,
    /// The bytes of all of them.
    pub bytes: u64,
}

/// One layer of an environment.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct LayerRow {
    /// Its key.
    pub key: Digest,
    /// `fetch` or `setup`.
    pub kind: String,
    /// When it was built.
    pub built_at: Timestamp,
    /// When it was used last.
    pub last_used: Option<Timestamp>,
    /// Whether a process uses it now.
    pub in_use: bool,
    /// The number of its files.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Its commands.
    pub commands: Vec<String>,
}

/// `herma env show --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct EnvironmentLayerOutput {
    /// `herma.environment-layer/v1`.
    pub schema: &'static str,
    /// How it was built.
    pub layer: LayerBuildRecord,
    /// Where its files are.
    pub directory: String,
}

/// `herma env build --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct EnvironmentBuiltOutput {
    /// `herma.environment-built/v1`.
    pub schema: &'static str,
    /// The layers: fetch first, then setup.
    pub layers: Vec<LayerBuildRecord>,
}

/// `herma env prune --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct EnvironmentsPrunedOutput {
    /// `herma.environments-pruned/v1`.
    pub schema: &'static str,
    /// The removed layers.
    pub removed: Vec<Digest>,
    /// The layers that stay.
    pub kept: Vec<Digest>,
    /// Those among them that a process uses.
    pub in_use: Vec<Digest>,
    /// The bytes that were freed.
    pub freed_bytes: u64,
}
