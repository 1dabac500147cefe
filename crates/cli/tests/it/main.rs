//! Runs the real herma binary, from outside, and looks at what it leaves.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on must fail"
)]

mod bad_input;
mod cli;
mod crash;
mod failure_matrix;
mod full_disk;
mod hostile;
mod kit;
mod paths;
mod tamper;
mod targets;
