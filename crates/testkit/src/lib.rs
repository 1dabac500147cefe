//! Helpers that tests and fuzz targets share.

#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    clippy::missing_panics_doc,
    reason = "a test ends with a panic"
)]

pub mod fuzz;

#[path = "../../evidence/tests/it/sample.rs"]
#[allow(dead_code, reason = "the tests of herma-evidence use more of it")]
mod sample;
