//! Tests of whole bundles: written, attested, verified, broken.

// Helpers of tests may fail like tests do.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod crash;
mod logs;
mod model_calls;
mod needs;
mod outcome;
mod sample;
mod signed;
mod tamper;
mod transcript;
mod trust_chain;
mod writing;
