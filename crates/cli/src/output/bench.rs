//! What `herma bench router` and `herma bench sandbox` print.

use herma_bench::Measured;
use herma_bench::sandbox::SandboxMeasured;
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

/// `herma bench sandbox --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct BenchSandboxOutput {
    /// `herma.bench-sandbox/v1`.
    pub schema: &'static str,
    /// What was measured.
    #[serde(flatten)]
    pub measured: SandboxMeasured,
}
