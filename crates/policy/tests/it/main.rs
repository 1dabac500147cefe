//! The policies that herma ships, and what an operator can do to them.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on must fail")]

mod compiling;
mod deciding;
mod kit;
