//! Integration tests of environments.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on should stop"
)]

mod build;
mod definition;
mod detect;
mod kit;
mod layers;
mod preflight;
mod registries;
mod tools;
mod views;
