//! What `herma router probe` says in JSON.

use herma_core::blocker::BlockerRecord;
use herma_router::probe::Capabilities;
use schemars::JsonSchema;
use serde::Serialize;

/// What a model can do, by `herma router probe`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct RouterProbeOutput {
    /// `herma.router-probe/v1`.
    pub schema: &'static str,
    /// Who was asked, by the name in the configuration.
    pub upstream: String,
    /// The model, as the upstream calls it.
    pub model: String,
    /// What was found; nothing where the model could not be asked.
    pub capabilities: Option<Capabilities>,
    /// What a run that depends on the model would be blocked by.
    pub blocker: Option<BlockerRecord>,
}
