//! The judgement of an engine's tool calls: the socket at which an agent's hook asks before each call, and the record of the
//! answers.

pub(crate) mod record;
mod service;

pub use service::RunGovernance;

pub(crate) use record::{Seen, bounded, data};
pub(crate) use service::{ToolCallResults, end, start};
