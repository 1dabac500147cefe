//! The router's pure parts as a whole: requests, answers, streams and scripts.

#![allow(clippy::unwrap_used, reason = "the helpers of tests are tests too")]

mod answers;
mod kit;
mod reaching_out;
mod requests;
mod rewrites;
mod scripted;
mod streams;
