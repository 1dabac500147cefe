//! The output of `herma discard`, `herma gc` and `herma export`.

use std::path::PathBuf;

use herma_core::{Digest, RunId};
use schemars::JsonSchema;
use serde::Serialize;

/// `herma discard --json`.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct DiscardOutput {
    /// `herma.discarded/v1`.
    pub schema: &'static str,
    /// The run.
    pub run_id: RunId,
    /// The deleted directories.
    pub removed: Vec<&'static str>,
}

/// `herma gc --json`.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct GcOutput {
    /// `herma.gc/v1`.
    pub schema: &'static str,
    /// Whether it was removed; a plan otherwise.
    pub removed: bool,
    /// The runs whose workspace or session is removed.
    pub workspaces: Vec<GcWorkspace>,
    /// The layers of environments.
    pub environments: Vec<GcEnvironment>,
    /// The bundles that no record names.
    pub bundles: Vec<GcBundle>,
    /// The bundles that are old enough and stay.
    pub kept_bundles: Vec<GcKept>,
    /// The records that could not be read. While there is one, no bundle is removed.
    pub unreadable: Vec<String>,
    /// The bytes of all that is removed.
    pub bytes: u64,
}

/// A run that keeps something.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct GcWorkspace {
    /// The run.
    pub run_id: RunId,
    /// The directories.
    pub kept: Vec<&'static str>,
    /// Their bytes.
    pub bytes: u64,
}

/// A layer of an environment.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct GcEnvironment {
    /// Its key.
    pub key: Digest,
    /// Its bytes.
    pub bytes: u64,
}

/// A bundle that is removed.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct GcBundle {
    /// The run.
    pub run_id: RunId,
    /// The digest of its `attestation.json`.
    pub attestation: Digest,
    /// Its bytes.
    pub bytes: u64,
}

/// A bundle that stays.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct GcKept {
    /// The run.
    pub run_id: RunId,
    /// The records that name it.
    pub because: Vec<String>,
}

/// `herma export --json`.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ExportOutput {
    /// `herma.export/v1`.
    pub schema: &'static str,
    /// The archive.
    pub file: PathBuf,
    /// The runs in it.
    pub runs: Vec<RunId>,
    /// Its size in bytes.
    pub bytes: u64,
    /// Its digest.
    pub sha256: Digest,
}
