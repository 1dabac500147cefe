//! `herma verify` on bundles that somebody with a signing key made by hand: its findings and its cost.

#![allow(clippy::disallowed_types, reason = "the test starts herma itself, from outside")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on must fail"
)]

mod binary_patch;
mod cost;
mod environments;
mod forge;
mod shapes;
mod tamper;
mod transcripts;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::LazyLock;

use tempfile::TempDir;

/// The bundle of a demo that passed in this destination.
pub(crate) fn demo(destination: &str) -> (TempDir, PathBuf) {
    let home = TempDir::new().unwrap();
    let ended = herma(home.path()).args(["demo", "--json", "--destination", destination]).output().unwrap();
    assert!(ended.status.success(), "{ended:?}");
    let bundle = only_bundle(home.path());
    (home, bundle)
}

/// The bundle of the one run of a home.
pub(crate) fn only_bundle(dir: &Path) -> PathBuf {
    let run = std::fs::read_dir(dir.join("home/runs")).unwrap().next().unwrap().unwrap();
    run.path().join("bundle")
}

/// The bundle that the tests change; it is made once.
pub(crate) fn honest() -> &'static Path {
    static BUNDLE: LazyLock<(TempDir, PathBuf)> = LazyLock::new(|| demo("host"));
    &BUNDLE.1
}

/// herma in a home of its own.
#[allow(clippy::disallowed_methods, reason = "git is where the caller's other programs are")]
pub(crate) fn herma(dir: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_herma"));
    let path = std::env::var_os("PATH").unwrap_or_default();
    command.env_clear().env("PATH", path).env("HOME", dir).env("HERMA_HOME", dir.join("home"));
    command.current_dir(dir).stdin(Stdio::null());
    command
}
