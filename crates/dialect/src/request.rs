//! Reads requests.

mod conversation;
mod keys;
mod path;
mod reader;
mod spans;
mod tools;

use std::borrow::Cow;

use serde_json::Value;

use reader::Reader;

use crate::dialect::Dialect;
use crate::endpoint::Endpoint;
use crate::reaches_out::ReachesOut;
use crate::refusal::Refusal;

pub use spans::MaximumKey;
pub(super) use spans::{Spans, StreamOptions};

/// Everything that herma reads of a request. The scripted upstream answers it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ModelRequest {
    /// The model, as the client names it.
    pub model: String,
    /// Whether the answer is to be a stream.
    pub stream: bool,
    /// Whether a chat stream is to end with its usage; `None` where the client does not say.
    pub include_usage: Option<bool>,
    /// The most tokens of output for one answer; the largest, where several keys say it.
    pub max_output: Option<u64>,
    /// How many answers are asked for, usually one.
    pub choices: u64,
    /// The tools that the client runs.
    pub tools: Vec<Tool>,
    /// The conversation so far.
    pub turns: Turns,
    /// The parts that make the upstream reach out, the first few.
    pub reaches_out: Vec<ReachesOut>,
}

/// A tool that the client offers and runs itself.
#[derive(Clone, Debug, PartialEq)]
pub struct Tool {
    /// By what the model calls it.
    pub name: String,
    /// How it is called.
    pub kind: ToolKind,
}

/// How a tool is called.
#[derive(Clone, Debug, PartialEq)]
pub enum ToolKind {
    /// With a JSON object.
    Function {
        /// The JSON schema of that object; `null` if there is none.
        parameters: Value,
    },
    /// With free text.
    Custom,
    /// As the dialect defines for this type of tool: `local_shell`, `apply_patch`, `bash_20250124`.
    BuiltIn {
        /// The type.
        of: String,
    },
}

/// The conversation in a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Turns {
    /// All text of system, user and tool results, one piece on a line.
    pub text: String,
    /// How many turns of the assistant there are.
    pub answered: usize,
    /// The ids of all calls that the assistant made, in order.
    pub calls: Vec<String>,
    /// The results of tools since the assistant's last turn.
    pub last_tool_results: Vec<ToolResult>,
}

/// The result of a tool call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolResult {
    /// The call that it answers.
    pub call_id: String,
    /// Its text.
    pub text: String,
}

/// The parts of a request that admission and budget need, with their spans. It copies no text of the conversation.
#[derive(Clone, Debug)]
pub struct Outline<'a> {
    /// The model, as the client names it.
    pub model: Cow<'a, str>,
    /// Whether the answer is to be a stream.
    pub stream: bool,
    /// Whether a chat stream is to end with its usage; `None` where the client does not say.
    pub include_usage: Option<bool>,
    /// The most tokens of output for one answer; the largest, where several keys say it.
    pub max_output: Option<u64>,
    /// How many answers are asked for, usually one.
    pub choices: u64,
    /// Whether the answer is to be stored; `None` where the client does not say, and the upstream decides.
    pub store: Option<bool>,
    /// The parts that make the upstream reach out, the first few.
    pub reaches_out: Vec<ReachesOut>,
    /// The keys at the top that the API does not list.
    pub unlisted: Vec<String>,
    pub(super) dialect: Dialect,
    pub(super) body: &'a str,
    pub(super) spans: Spans,
}

/// Reads a request in full.
pub fn read_request(dialect: Dialect, body: &[u8]) -> Result<ModelRequest, Refusal> {
    let mut reader = Reader::new(main_endpoint(dialect), text_of(body)?, true);
    let outline = reader.request()?;
    Ok(ModelRequest {
        model: outline.model.into_owned(),
        stream: outline.stream,
        include_usage: outline.include_usage,
        max_output: outline.max_output,
        choices: outline.choices,
        tools: reader.tools,
        turns: reader.turns,
        reaches_out: outline.reaches_out,
    })
}

/// Reads the parts of a request that admission and budget need. It refuses exactly what [`read_request`] refuses.
pub fn outline(dialect: Dialect, body: &[u8]) -> Result<Outline<'_>, Refusal> {
    outline_at(main_endpoint(dialect), body)
}

/// The same for a request to this endpoint, which determines the keys that it may have.
pub fn outline_at(endpoint: Endpoint, body: &[u8]) -> Result<Outline<'_>, Refusal> {
    Reader::new(endpoint, text_of(body)?, false).request()
}

/// The endpoint for conversations in a dialect.
fn main_endpoint(dialect: Dialect) -> Endpoint {
    match dialect {
        Dialect::Chat => Endpoint::Chat,
        Dialect::Responses => Endpoint::Responses,
        Dialect::Messages => Endpoint::Messages,
    }
}

fn text_of(body: &[u8]) -> Result<&str, Refusal> {
    std::str::from_utf8(body).map_err(|bad| Refusal::NotUtf8 { at: bad.valid_up_to() })
}
