//! Starts real processes on the host and in bubblewrap, and checks what they can do and what is left of them.

#![allow(clippy::disallowed_types, reason = "the tests look at processes from outside")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on must fail"
)]

mod docker;
mod docs;
mod ending;
mod filter;
mod house;
mod isolation;
mod limits;
mod loopback_relay;
mod outer;
mod overlays;
mod probes;
mod slow;
mod speed;
mod support;
mod teeth;
mod toolchains;
mod tools;
mod waiting;
