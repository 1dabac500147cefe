//! Tests over an installation whose records are arbitrary.

// Helpers of tests may fail like tests do.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod default_engine;
