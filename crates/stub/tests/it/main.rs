//! The program `herma-stub` from outside: what it is given, what it does, what it says.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on ends there"
)]
#![allow(clippy::disallowed_types, reason = "the program under test is started as an agent is")]

mod assignments;
mod bad_input;
mod identity;
mod page;
mod program;
mod sandbox;
