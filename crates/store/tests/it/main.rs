//! The store as other crates and other processes see it.

#![allow(clippy::unwrap_used, reason = "the helpers of tests are tests too")]

mod approvals;
mod leases;
mod race;
mod sample;
