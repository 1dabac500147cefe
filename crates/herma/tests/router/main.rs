//! The real `herma router` under load, with upstreams and clients that fail: budgets, crashes, leaks.

#![allow(clippy::disallowed_types, reason = "the test starts herma itself, from outside")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on must fail"
)]

mod budgets;
mod faults;
mod kit;
mod load;
mod soak;
