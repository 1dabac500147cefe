//! The configuration: what it says, what it refuses, and what it never shows.

#![allow(clippy::expect_used, clippy::panic, reason = "a test that cannot go on ends there")]

mod bad;
mod bad_together;
mod canary;
mod files;
mod good;
mod kit;
mod secrets;
