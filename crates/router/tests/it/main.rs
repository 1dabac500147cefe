//! The router's pure parts as a whole: requests, answers, streams and scripts.

#![allow(clippy::unwrap_used, reason = "the helpers of tests are tests too")]

mod above;
mod answers;
mod audit;
mod audit_killed;
mod budgets;
mod config;
mod kit;
mod probe;
mod reaching_out;
mod requests;
mod rewrites;
mod scripted;
mod service;
mod streams;
mod tool_calls;
mod upstream;
