//! Anthropic Messages.

use std::num::NonZeroUsize;

use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};

use super::pieces::pieces;
use super::sse::{self, Place, json};
use crate::reply::{Block, Reply};
use crate::tools::{Input, ToolCall};
use crate::turn::{Stop, Used};

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Event<'a> {
    MessageStart { message: Message<'a> },
    ContentBlockStart { index: usize, content_block: ContentBlock<'a> },
    Ping,
    ContentBlockDelta { index: usize, delta: Delta<'a> },
    ContentBlockStop { index: usize },
    MessageDelta { delta: End, usage: OutputUsage },
    MessageStop,
}

impl Event<'_> {
    fn name(&self) -> &'static str {
        match self {
            Self::MessageStart { .. } => "message_start",
            Self::ContentBlockStart { .. } => "content_block_start",
            Self::Ping => "ping",
            Self::ContentBlockDelta { .. } => "content_block_delta",
            Self::ContentBlockStop { .. } => "content_block_stop",
            Self::MessageDelta { .. } => "message_delta",
            Self::MessageStop => "message_stop",
        }
    }

    fn place(&self) -> Place {
        match self {
            Self::MessageStart { .. } | Self::ContentBlockStart { .. } | Self::Ping => Place::Opening,
            Self::ContentBlockDelta { .. } => Place::Piece,
            Self::ContentBlockStop { .. } | Self::MessageDelta { .. } | Self::MessageStop => Place::Closing,
        }
    }

    fn sse(&self) -> sse::Event {
        sse::Event::named(self.place(), self.name(), self)
    }
}

#[derive(Serialize)]
struct Message<'a> {
    id: String,
    #[serde(rename = "type")]
    kind: &'static str,
    role: &'static str,
    model: &'a str,
    content: Vec<ContentBlock<'a>>,
    stop_reason: Option<&'static str>,
    stop_sequence: Option<()>,
    usage: Usage,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum ContentBlock<'a> {
    Thinking { thinking: &'a str, signature: String },
    Text { text: &'a str },
    ToolUse { id: String, name: &'a str, input: Box<RawValue> },
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[expect(clippy::enum_variant_names, reason = "the API's own names")]
enum Delta<'a> {
    ThinkingDelta { thinking: &'a str },
    SignatureDelta { signature: String },
    TextDelta { text: &'a str },
    InputJsonDelta { partial_json: &'a str },
}

#[derive(Serialize)]
struct End {
    stop_reason: &'static str,
    stop_sequence: Option<()>,
}

#[derive(Serialize)]
#[expect(clippy::struct_field_names, reason = "the API's own names")]
struct Usage {
    input_tokens: u64,
    cache_creation_input_tokens: u64,
    cache_read_input_tokens: u64,
    output_tokens: u64,
}

#[derive(Serialize)]
struct OutputUsage {
    output_tokens: u64,
}

impl Usage {
    /// Here, unlike elsewhere, what was cached is not a part of the input.
    fn of(used: Used, output_tokens: u64) -> Self {
        Self {
            input_tokens: used.input.saturating_sub(used.cached).saturating_sub(used.cache_write),
            cache_creation_input_tokens: used.cache_write,
            cache_read_input_tokens: used.cached,
            output_tokens,
        }
    }
}

/// The body.
pub(super) fn whole(reply: &Reply) -> Vec<u8> {
    let content = reply.blocks.iter().enumerate().map(|(index, block)| match block {
        Block::Think(text) => ContentBlock::Thinking { thinking: text, signature: reply.ids.signature(text) },
        Block::Say(text) | Block::Refuse(text) => ContentBlock::Text { text },
        Block::Call(tool) => tool_use(reply, index, tool, input(tool)),
    });
    let content = content.collect();
    json(&message(reply, content, Some(stop_reason(reply.stop)), Usage::of(reply.used, reply.used.output)))
}

/// The stream.
pub(super) fn events(reply: &Reply, chunk: NonZeroUsize) -> Vec<sse::Event> {
    // The first event knows the input; the output is at least the token that came with it.
    let begun = Usage::of(reply.used, reply.used.output.min(1));
    let mut events = vec![
        Event::MessageStart { message: message(reply, Vec::new(), None, begun) }.sse(),
        Event::Ping.sse(),
    ];
    for (index, block) in reply.blocks.iter().enumerate() {
        let delta = |delta| Event::ContentBlockDelta { index, delta }.sse();
        let content_block = match block {
            Block::Think(_) => ContentBlock::Thinking { thinking: "", signature: String::new() },
            Block::Say(_) | Block::Refuse(_) => ContentBlock::Text { text: "" },
            Block::Call(tool) => tool_use(reply, index, tool, "{}"),
        };
        events.push(Event::ContentBlockStart { index, content_block }.sse());
        match block {
            Block::Think(text) => {
                events.extend(pieces(text, chunk).map(|thinking| delta(Delta::ThinkingDelta { thinking })));
                events.push(delta(Delta::SignatureDelta { signature: reply.ids.signature(text) }));
            }
            Block::Say(text) | Block::Refuse(text) => {
                events.extend(pieces(text, chunk).map(|text| delta(Delta::TextDelta { text })));
            }
            Block::Call(tool) => {
                let partial = pieces(input(tool), chunk);
                events.push(delta(Delta::InputJsonDelta { partial_json: "" }));
                events.extend(partial.map(|partial_json| delta(Delta::InputJsonDelta { partial_json })));
            }
        }
        events.push(Event::ContentBlockStop { index }.sse());
    }
    let end = End { stop_reason: stop_reason(reply.stop), stop_sequence: None };
    let usage = OutputUsage { output_tokens: reply.used.output };
    events.push(Event::MessageDelta { delta: end, usage }.sse());
    events.push(Event::MessageStop.sse());
    events
}

/// One more piece of text, in the last block.
pub(super) fn more_text(reply: &Reply) -> Vec<u8> {
    let index = reply.blocks.len().saturating_sub(1);
    Event::ContentBlockDelta { index, delta: Delta::TextDelta { text: "more " } }.sse().bytes
}

/// A sign of life.
pub(super) fn ping() -> Vec<u8> {
    Event::Ping.sse().bytes
}

fn message<'a>(
    reply: &'a Reply,
    content: Vec<ContentBlock<'a>>,
    stop_reason: Option<&'static str>,
    usage: Usage,
) -> Message<'a> {
    Message {
        id: reply.ids.id("msg_", 0),
        kind: "message",
        role: "assistant",
        model: &reply.model,
        content,
        stop_reason,
        stop_sequence: None,
        usage,
    }
}

fn tool_use<'a>(reply: &Reply, n: usize, tool: &'a ToolCall, input: &str) -> ContentBlock<'a> {
    // Input that is not JSON can only be sent as a text.
    let raw = RawValue::from_string(input.to_owned()).or_else(|_| to_raw_value(input));
    let input = raw.unwrap_or_else(|_| RawValue::NULL.to_owned());
    ContentBlock::ToolUse { id: reply.ids.id("toolu_", n), name: &tool.name, input }
}

/// The input of a call. Freeform tools and those of another provider cannot be advertised here.
fn input(tool: &ToolCall) -> &str {
    match &tool.input {
        Input::Arguments(text) | Input::Freeform(text) | Input::LocalShell(text) | Input::Shell(text) => text,
        Input::ApplyPatch(operation) => operation.diff.as_deref().unwrap_or_default(),
    }
}

fn stop_reason(stop: Stop) -> &'static str {
    match stop {
        Stop::End => "end_turn",
        Stop::Tools => "tool_use",
        Stop::Length => "max_tokens",
        Stop::ContentFilter | Stop::Refusal => "refusal",
    }
}
