//! The JSON output of each benchmark.

use schemars::JsonSchema;
use serde::Serialize;

use crate::measure::Measured;
use crate::sandbox::SandboxMeasured;

/// `cargo xtask bench router --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct BenchRouterOutput {
    /// `herma.bench-router/v1`.
    pub schema: &'static str,
    /// The measurements.
    #[serde(flatten)]
    pub measured: Measured,
}

/// `cargo xtask bench sandbox --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct BenchSandboxOutput {
    /// `herma.bench-sandbox/v1`.
    pub schema: &'static str,
    /// The measurements.
    #[serde(flatten)]
    pub measured: SandboxMeasured,
}

/// `cargo xtask bench harness --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct BenchOutput {
    /// `herma.bench/v1`.
    pub schema: &'static str,
    /// One row for each measurement.
    pub rows: Vec<BenchRow>,
}

/// One measurement: ours against the same work without herma, medians of the same run.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct BenchRow {
    /// The measurements.
    pub name: String,
    /// Files of the repository or bundle.
    pub files: u64,
    /// With herma, in milliseconds.
    pub governed_ms: f64,
    /// Without herma, in milliseconds.
    pub bare_ms: f64,
    /// How many times as long it takes with herma.
    pub ratio: f64,
    /// The ratio that must not be exceeded.
    pub limit: f64,
    /// The most memory that herma itself used, in KiB, where it was measured.
    pub peak_kib: Option<u64>,
}
