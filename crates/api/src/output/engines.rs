//! Output of `herma engines --json`.

use herma_core::capability::Capabilities;
use herma_core::engine::EngineName;
use herma_core::report::Admission;
use herma_core::{Digest, Stage};
use schemars::JsonSchema;
use serde::Serialize;

/// `herma engines list --json`; `enable` and `disable` name the one engine that they switched.
#[derive(Debug, Serialize, JsonSchema)]
pub struct EnginesOutput {
    /// `herma.engines/v1`.
    pub schema: &'static str,
    /// The engines, the default first.
    pub engines: Vec<EngineRow>,
}

/// An engine in a list.
#[derive(Debug, Serialize, JsonSchema)]
pub struct EngineRow {
    /// Its name.
    pub engine: EngineName,
    /// The version of its agent; `not installed` where there is none.
    pub version: String,
    /// Whether it is part of herma itself.
    pub built_in: bool,
    /// Whether it is switched on.
    pub enabled: bool,
    /// The digest of everything that it runs; none where there is no program to take it of.
    pub digest: Option<Digest>,
    /// Whether it is admitted.
    pub admission: Admission,
    /// Why, for an engine that needs an admission.
    pub admission_detail: Option<String>,
    /// The highest stage that it has proven, or needs no proof of, with every one below; none if not even the first.
    pub proven_stage: Option<Stage>,
    /// Its capabilities beyond working on a contract; a contract's `needs` is checked against them.
    pub capabilities: Capabilities,
    /// The next step; none if nothing is missing.
    pub next_step: Option<String>,
}

/// `herma engines install --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct InstalledOutput {
    /// `herma.installed/v1`.
    pub schema: &'static str,
    /// The engine.
    pub engine: EngineName,
    /// The version of its package.
    pub version: String,
    /// The digest of the engine with it, which its admission names.
    pub digest: Digest,
    /// The directory of the tree.
    pub tree: String,
    /// The draft of its admission.
    pub draft: String,
    /// The file with its license; none if the package has none that herma finds.
    pub license_file: Option<String>,
    /// The fields that the draft lacks; none if complete.
    pub lacks: Option<String>,
    /// The next step.
    pub next_step: String,
}
