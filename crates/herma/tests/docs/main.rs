//! The docs cannot rot: what can be made from the code is, every command in them is run, and every link leads somewhere.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::format_push_string,
    reason = "a test that cannot read its page fails; pages are put together from pieces"
)]

mod blockers;
mod blocks;
mod cli;
mod console;
mod contract;
mod engines;
mod escape;
mod evidence;
mod filters;
mod generated;
mod house;
mod pages;
mod schema;
mod tables;
mod transcripts;
