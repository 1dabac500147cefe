//! Starts real processes on the host and in bubblewrap, and looks at what they can do and what is left of them.

#![allow(clippy::disallowed_types, reason = "the tests look at processes from outside")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on must fail"
)]

mod ending;
mod outer;
mod probes;
mod support;
mod tools;
mod walls;
