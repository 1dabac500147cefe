//! What `herma bench router` prints.

use herma_bench::Measured;
use schemars::JsonSchema;
use serde::Serialize;

/// `herma bench router --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct BenchRouterOutput {
    /// `herma.bench-router/v1`.
    pub schema: &'static str,
    /// What was measured.
    #[serde(flatten)]
    pub measured: Measured,
}
