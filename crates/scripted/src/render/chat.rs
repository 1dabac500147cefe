//! Chat Completions.

use std::num::NonZeroUsize;

use serde::Serialize;

use super::pieces::pieces;
use super::sse::{Event, Place, json, raw};
use crate::reply::{Block, Reply};
use crate::tools::{Input, ToolCall};
use crate::turn::{Stop, Used};

#[derive(Serialize)]
struct Completion<'a, C> {
    id: String,
    object: &'static str,
    created: u64,
    model: &'a str,
    system_fingerprint: String,
    choices: Vec<C>,
    #[serde(skip_serializing_if = "UsageKey::is_absent")]
    usage: UsageKey,
}

/// The key `usage`. Where a stream ends with usage, every chunk before has the key with nothing in it.
#[derive(Clone, Copy, Serialize)]
#[serde(untagged)]
enum UsageKey {
    Absent,
    Null,
    Used(Usage),
}

impl UsageKey {
    fn is_absent(&self) -> bool {
        matches!(self, Self::Absent)
    }
}

#[derive(Serialize)]
struct Choice<'a> {
    index: u32,
    message: Message<'a>,
    logprobs: Option<()>,
    finish_reason: &'static str,
}

#[derive(Serialize)]
struct Message<'a> {
    role: &'static str,
    content: Option<&'a str>,
    refusal: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_content: Option<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<Call<'a>>,
}

#[derive(Serialize)]
struct ChunkChoice<'a> {
    index: u32,
    delta: Delta<'a>,
    logprobs: Option<()>,
    finish_reason: Option<&'static str>,
}

#[derive(Default, Serialize)]
struct Delta<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    role: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_content: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    refusal: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_calls: Option<[CallDelta<'a>; 1]>,
}

#[derive(Serialize)]
struct CallDelta<'a> {
    index: usize,
    #[serde(flatten)]
    call: CallPart<'a>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum CallPart<'a> {
    First(Call<'a>),
    Arguments { function: Arguments<'a> },
    Input { custom: Freeform<'a> },
}

#[derive(Serialize)]
struct Arguments<'a> {
    arguments: &'a str,
}

#[derive(Serialize)]
struct Freeform<'a> {
    input: &'a str,
}

#[derive(Serialize)]
struct Call<'a> {
    id: String,
    #[serde(flatten)]
    kind: CallKind<'a>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum CallKind<'a> {
    Function { function: Function<'a> },
    Custom { custom: Custom<'a> },
}

#[derive(Serialize)]
struct Function<'a> {
    name: &'a str,
    arguments: &'a str,
}

#[derive(Serialize)]
struct Custom<'a> {
    name: &'a str,
    input: &'a str,
}

#[derive(Clone, Copy, Serialize)]
struct Usage {
    prompt_tokens: u64,
    completion_tokens: u64,
    total_tokens: u64,
    prompt_tokens_details: PromptDetails,
    completion_tokens_details: CompletionDetails,
}

#[derive(Clone, Copy, Serialize)]
struct PromptDetails {
    cached_tokens: u64,
    cache_write_tokens: u64,
}

#[derive(Clone, Copy, Serialize)]
struct CompletionDetails {
    reasoning_tokens: u64,
}

impl From<Used> for Usage {
    fn from(used: Used) -> Self {
        Self {
            prompt_tokens: used.input,
            completion_tokens: used.output,
            total_tokens: used.input.saturating_add(used.output),
            prompt_tokens_details: PromptDetails {
                cached_tokens: used.cached,
                cache_write_tokens: used.cache_write,
            },
            completion_tokens_details: CompletionDetails { reasoning_tokens: used.reasoning },
        }
    }
}

/// The body.
pub(super) fn whole(reply: &Reply) -> Vec<u8> {
    let mut message = Message {
        role: "assistant",
        content: None,
        refusal: None,
        reasoning_content: None,
        tool_calls: Vec::new(),
    };
    for block in &reply.blocks {
        match block {
            Block::Think(text) => message.reasoning_content = Some(text),
            Block::Say(text) => message.content = Some(text),
            Block::Refuse(text) => message.refusal = Some(text),
            Block::Call(tool) => {
                message.tool_calls.push(call(reply, message.tool_calls.len(), tool, input(tool)));
            }
        }
    }
    let choice = Choice { index: 0, message, logprobs: None, finish_reason: finish_reason(reply.stop) };
    let usage = UsageKey::Used(reply.used.into());
    json(&completion(reply, "chat.completion", vec![choice], usage))
}

/// The stream.
pub(super) fn events(reply: &Reply, chunk: NonZeroUsize, include_usage: bool) -> Vec<Event> {
    let usage = if include_usage { UsageKey::Null } else { UsageKey::Absent };
    let event = |place, delta| Event::plain(place, &piece(reply, delta, None, usage));
    let first = Delta { role: Some("assistant"), content: Some(""), ..Delta::default() };
    let mut events = vec![event(Place::Opening, first)];
    let mut calls = 0;
    for block in &reply.blocks {
        match block {
            Block::Think(text) => events.extend(pieces(text, chunk).map(|text| {
                event(Place::Piece, Delta { reasoning_content: Some(text), ..Delta::default() })
            })),
            Block::Say(text) => events.extend(
                pieces(text, chunk)
                    .map(|text| event(Place::Piece, Delta { content: Some(text), ..Delta::default() })),
            ),
            Block::Refuse(text) => events.extend(
                pieces(text, chunk)
                    .map(|text| event(Place::Piece, Delta { refusal: Some(text), ..Delta::default() })),
            ),
            Block::Call(tool) => {
                let part =
                    |call| Delta { tool_calls: Some([CallDelta { index: calls, call }]), ..Delta::default() };
                events.push(event(Place::Opening, part(CallPart::First(call(reply, calls, tool, "")))));
                events.extend(pieces(input(tool), chunk).map(|text| {
                    event(
                        Place::Piece,
                        part(match tool.input {
                            Input::Freeform(_) => CallPart::Input { custom: Freeform { input: text } },
                            _ => CallPart::Arguments { function: Arguments { arguments: text } },
                        }),
                    )
                }));
                calls += 1;
            }
        }
    }
    let last = piece(reply, Delta::default(), Some(finish_reason(reply.stop)), usage);
    events.push(Event::plain(Place::Closing, &last));
    if include_usage {
        let choices: Vec<ChunkChoice<'_>> = Vec::new();
        let used = completion(reply, "chat.completion.chunk", choices, UsageKey::Used(reply.used.into()));
        events.push(Event::plain(Place::Closing, &used));
    }
    events.push(Event { bytes: raw(None, b"[DONE]"), place: Place::Closing });
    events
}

/// One more piece of text.
pub(super) fn more_text(reply: &Reply) -> Vec<u8> {
    let delta = Delta { content: Some("more "), ..Delta::default() };
    Event::plain(Place::Piece, &piece(reply, delta, None, UsageKey::Absent)).bytes
}

fn piece<'a>(
    reply: &'a Reply,
    delta: Delta<'a>,
    finish_reason: Option<&'static str>,
    usage: UsageKey,
) -> Completion<'a, ChunkChoice<'a>> {
    let choice = ChunkChoice { index: 0, delta, logprobs: None, finish_reason };
    completion(reply, "chat.completion.chunk", vec![choice], usage)
}

fn completion<'a, C>(
    reply: &'a Reply,
    object: &'static str,
    choices: Vec<C>,
    usage: UsageKey,
) -> Completion<'a, C> {
    Completion {
        id: reply.ids.id("chatcmpl-", 0),
        object,
        created: reply.ids.created(),
        model: &reply.model,
        system_fingerprint: reply.ids.id("fp_", 0),
        choices,
        usage,
    }
}

fn call<'a>(reply: &Reply, n: usize, tool: &'a ToolCall, text: &'a str) -> Call<'a> {
    let name = tool.name.as_str();
    let kind = match tool.input {
        Input::Freeform(_) => CallKind::Custom { custom: Custom { name, input: text } },
        _ => CallKind::Function { function: Function { name, arguments: text } },
    };
    Call { id: reply.ids.id("call_", n), kind }
}

/// The input of a call. The provider's own tools of another dialect cannot be advertised in this one.
fn input(tool: &ToolCall) -> &str {
    match &tool.input {
        Input::Arguments(text) | Input::Freeform(text) | Input::LocalShell(text) | Input::Shell(text) => text,
        Input::ApplyPatch(operation) => operation.diff.as_deref().unwrap_or_default(),
    }
}

fn finish_reason(stop: Stop) -> &'static str {
    match stop {
        Stop::End | Stop::Refusal => "stop",
        Stop::Tools => "tool_calls",
        Stop::Length => "length",
        Stop::ContentFilter => "content_filter",
    }
}
