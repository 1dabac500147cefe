//! Tests of the trust records that an installation keeps.

// Helpers of tests may fail like tests do.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod admissions;
mod approvers;
mod trust_chain;
