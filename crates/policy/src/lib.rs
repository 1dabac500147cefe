//! Whether a tool may be called and a child run be had: policies in Cedar, those that herma ships and those of the operator, who can only narrow
//! what herma ships. Values come in, decisions go out; nothing here knows files, clocks or processes.

mod compile;
mod decide;
mod problem;
mod shipped;

pub use compile::{Policies, PolicyFile, Rule};
pub use decide::{Asker, ChildRun, Decision};
pub use problem::{Problem, Problems};
pub use shipped::{SCHEMA, SHIPPED};
