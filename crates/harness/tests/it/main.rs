//! Tests of what the harness keeps in an installation.

// Helpers of tests may fail like tests do.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod admissions;
mod approvers;
mod default_engine;
mod trust_chain;
