//! Upstreams over real sockets of this machine: the requests that they get, and how each failure is reported.

#![allow(clippy::expect_used, clippy::panic, reason = "a test that cannot go on ends there")]

mod broken;
mod canary;
mod cancelled;
mod circuit_breaker;
mod early;
mod endpoints;
mod golden;
mod kit;
mod pool;
mod scripts;
mod tls;
mod unreached;
