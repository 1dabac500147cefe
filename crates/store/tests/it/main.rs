//! The interface of the store on every engine, also from several processes. A new engine is one more row in
//! `backend.rs`.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "the helpers of tests are tests too"
)]

mod approvals;
mod backend;
mod cancelled_calls;
mod connections;
mod event_writer;
mod events;
mod leases;
mod outage;
mod postgres_server;
mod race;
mod runs;
mod sample;
mod usage;
mod whole_store;
