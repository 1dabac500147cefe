//! The tests that install and drive the real agents, in a binary of their own: they fetch some hundred megabytes and take
//! minutes. `scripts/agents` and `scripts/long` run it.

#![allow(
    dead_code,
    unused_imports,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "they use a part of the kit; a test that cannot go on must fail"
)]

mod agents;
#[path = "../docs/console.rs"]
mod console;
#[path = "../docs/filters.rs"]
mod filters;
mod kit;
#[path = "../docs/pages.rs"]
mod pages;
