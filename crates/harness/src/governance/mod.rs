//! What an engine's tool calls are judged by: the policies of the installation, and the socket at which an agent's hook asks
//! them before each call.

pub(crate) mod record;
mod service;

pub use service::RunGovernance;

pub(crate) use record::{Seen, bounded, data};
pub(crate) use service::{end, start};
