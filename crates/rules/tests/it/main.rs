//! The rules as a whole, from terms and facts to violations and verdicts.

#![allow(clippy::unwrap_used, reason = "the helpers of tests are tests too")]

mod facts;
mod globs;
mod paths;
mod reference;
mod verdicts;
mod verification_files;
