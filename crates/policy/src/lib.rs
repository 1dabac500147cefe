//! Decides whether a tool may be called or a child run started: policies in Cedar, those that herma ships and those
//! of the operator, who can only narrow them. Values in, decisions out; this crate uses no files, clocks or
//! processes.

mod compile;
mod decide;
mod problem;
mod shipped;

pub use compile::{Policies, PolicyFile, PolicyRule};
pub use decide::{ChildRun, PolicyDecision, PolicyRequester};
pub use problem::{PolicyProblem, Problems};
pub use shipped::{SCHEMA, SHIPPED};
