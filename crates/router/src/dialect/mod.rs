//! The API dialects: what a request asks for, what a response used, and how an error is said.

mod answered;
mod asked;
mod error;
mod json;
mod reaches_out;
mod refusal;
mod request_keys;
mod rewrite;
mod tool_calls;
mod usage;

use std::fmt;

pub use answered::{Answered, NotAnAnswer, answered};
pub(crate) use answered::{Event, Gathered};
pub use asked::{Asked, MaximumKey, Outline, Tool, ToolKind, ToolResult, Turns, outline, outline_at, read};
pub use error::ApiError;
pub use json::MAX_DEPTH;
pub use reaches_out::{Reach, ReachesOut};
pub use refusal::Refusal;
pub(crate) use request_keys::cannot_be_added;
pub use request_keys::{RESERVED, request_keys};
pub use rewrite::{OutputBound, Rewrite, Splice};
pub use usage::{Doubt, Usage};

/// The API that a client speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Dialect {
    /// `POST /v1/chat/completions`.
    Chat,
    /// `POST /v1/responses`.
    Responses,
    /// `POST /v1/messages`.
    Messages,
}

impl fmt::Display for Dialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Chat => "chat",
            Self::Responses => "responses",
            Self::Messages => "messages",
        })
    }
}
