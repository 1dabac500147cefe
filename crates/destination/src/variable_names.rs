//! The names of the variables that herma sets for each process of a run.

/// Names the run in each of its processes.
pub const RUN_VARIABLE: &str = "HERMA_RUN";

/// The URL of the run's router, for programs that speak HTTP over TCP only.
pub const ROUTER_URL_VARIABLE: &str = "HERMA_ROUTER_URL";
