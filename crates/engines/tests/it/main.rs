//! The engines from outside: scripts, what they do, and the fixtures that they fix.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on ends there"
)]
#![allow(clippy::disallowed_types, reason = "tests run the fixtures' own verification commands and git")]

mod acp;
mod acp_sessions;
mod agents;
mod asking;
mod bad_scripts;
mod case;
mod claude;
mod connecting;
mod declarations;
mod engine;
mod fixtures;
mod misbehaviour;
mod place;
mod steps;
mod stub;
mod transcripts;
mod view;
