//! Upstreams, asked over real sockets of this machine: what they are sent, and how each failure is told.

#![allow(clippy::expect_used, clippy::panic, reason = "a test that cannot go on ends there")]

mod broken;
mod canary;
mod cancelled;
mod circuit_breaker;
mod doors;
mod early;
mod golden;
mod kit;
mod pool;
mod scripts;
mod tls;
mod unreached;
