//! The scripted upstream: what scripts mean, and what clients of each dialect get.

#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "a failed helper fails its test")]
#![allow(
    clippy::needless_pass_by_value,
    reason = "a value that is made in place reads better without a reference"
)]

mod agents;
mod bad_scripts;
mod check;
mod faults;
mod golden;
mod kit;
mod page;
mod properties;
mod shell;
mod tools;
mod turns;
