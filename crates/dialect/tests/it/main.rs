//! Requests, responses and streams in all dialects.

#![allow(clippy::unwrap_used, reason = "the helpers of tests are tests too")]

mod answers;
mod kit;
mod reaching_out;
mod requests;
mod rewrites;
mod streams;
mod tool_calls;
