//! The short form of the test of large targets: `scripts/long scale` has 200,000 files and five gigabytes.

#![allow(clippy::disallowed_types, reason = "herma is watched while it runs, which the kit does not do")]

use std::process::Command;

use crate::kit::{HERMA, Herma};
use crate::large_target;

#[test]
fn a_large_target_is_copied_with_bounded_memory_and_says_so() {
    let herma = Herma::new();
    let contracts = herma.at("contracts");
    large_target::make(&contracts.join("target"), 20_000, &[400]);
    let (contract, script) = large_target::contract(&contracts, "target");
    let mut run = Command::new(HERMA);
    run.env("HERMA_HOME", herma.home()).arg("run").arg(contract).arg("--script").arg(script);
    let watched = large_target::watch(run);
    assert!(watched.said.contains("copying 1,000 of 20,002 files"), "{}", watched.said);
    // Less than one file would take.
    assert!(watched.peak_bytes < 300 << 20, "{} bytes", watched.peak_bytes);
}
