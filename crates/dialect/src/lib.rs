//! The APIs of models: the endpoints, what a request asks for, what a response says and used, the events of a stream, and how
//! an error is written. No sockets, files or clocks.

mod api_error;
mod dialect;
pub mod endpoint;
mod json;
mod reaches_out;
mod refusal;
mod request;
mod request_keys;
mod response;
mod rewrite;
pub mod tap;
mod tool_calls;
mod usage;

pub use api_error::ApiError;
pub use dialect::Dialect;
pub use json::MAX_DEPTH;
pub use reaches_out::{Reach, ReachesOut};
pub use refusal::Refusal;
pub use request::{
    MaximumKey, ModelRequest, Outline, Tool, ToolKind, ToolResult, Turns, outline, outline_at, read_request,
};
pub use request_keys::{RESERVED, cannot_be_added, request_keys};
pub use response::{ResponseSummary, UnreadableResponse, read_response};
pub use rewrite::{OutputBound, Rewrite, Splice};
pub use usage::{Doubt, Usage};
