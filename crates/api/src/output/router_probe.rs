//! JSON output of `herma router probe`.

use herma_core::blocker::BlockerRecord;
use herma_router::probe::Capabilities;
use schemars::JsonSchema;
use serde::Serialize;

/// The capabilities of a model, by `herma router probe`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct RouterProbeOutput {
    /// `herma.router-probe/v1`.
    pub schema: &'static str,
    /// The upstream, by its name in the configuration.
    pub upstream: String,
    /// The model, as the upstream calls it.
    pub model: String,
    /// The result; none where the model could not be reached.
    pub capabilities: Option<Capabilities>,
    /// The blocker of a run that depends on the model.
    pub blocker: Option<BlockerRecord>,
}
