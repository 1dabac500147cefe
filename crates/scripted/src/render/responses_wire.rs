//! The types of Responses, with their keys in the order in which the API sends them.

use std::collections::BTreeMap;

use serde::Serialize;

use super::sse::{Event as SseEvent, Place};
use crate::turn::Used;

/// An event with its number.
#[derive(Serialize)]
pub(super) struct Numbered<'a> {
    #[serde(flatten)]
    pub(super) event: Event<'a>,
    pub(super) sequence_number: usize,
}

impl Numbered<'_> {
    pub(super) fn sse(&self) -> SseEvent {
        let (name, place) = self.event.name();
        SseEvent::named(place, name, self)
    }
}

/// Where in a response a piece belongs.
#[derive(Clone, Serialize)]
pub(super) struct At {
    pub(super) item_id: String,
    pub(super) output_index: usize,
}

#[derive(Serialize)]
#[serde(tag = "type")]
pub(super) enum Event<'a> {
    #[serde(rename = "response.created")]
    Created { response: Response<'a> },
    #[serde(rename = "response.in_progress")]
    InProgress { response: Response<'a> },
    #[serde(rename = "response.completed")]
    Completed { response: Response<'a> },
    #[serde(rename = "response.incomplete")]
    Incomplete { response: Response<'a> },
    #[serde(rename = "response.failed")]
    Failed { response: Response<'a> },
    #[serde(rename = "response.output_item.added")]
    ItemAdded { output_index: usize, item: Item<'a> },
    #[serde(rename = "response.output_item.done")]
    ItemDone { output_index: usize, item: Item<'a> },
    #[serde(rename = "response.content_part.added")]
    PartAdded {
        #[serde(flatten)]
        at: At,
        content_index: usize,
        part: Part<'a>,
    },
    #[serde(rename = "response.content_part.done")]
    PartDone {
        #[serde(flatten)]
        at: At,
        content_index: usize,
        part: Part<'a>,
    },
    #[serde(rename = "response.output_text.delta")]
    TextDelta {
        #[serde(flatten)]
        at: At,
        content_index: usize,
        delta: &'a str,
        logprobs: [(); 0],
    },
    #[serde(rename = "response.output_text.done")]
    TextDone {
        #[serde(flatten)]
        at: At,
        content_index: usize,
        text: &'a str,
        logprobs: [(); 0],
    },
    #[serde(rename = "response.refusal.delta")]
    RefusalDelta {
        #[serde(flatten)]
        at: At,
        content_index: usize,
        delta: &'a str,
    },
    #[serde(rename = "response.refusal.done")]
    RefusalDone {
        #[serde(flatten)]
        at: At,
        content_index: usize,
        refusal: &'a str,
    },
    #[serde(rename = "response.reasoning_summary_part.added")]
    SummaryPartAdded {
        #[serde(flatten)]
        at: At,
        summary_index: usize,
        part: Summary<'a>,
    },
    #[serde(rename = "response.reasoning_summary_part.done")]
    SummaryPartDone {
        #[serde(flatten)]
        at: At,
        summary_index: usize,
        part: Summary<'a>,
    },
    #[serde(rename = "response.reasoning_summary_text.delta")]
    SummaryDelta {
        #[serde(flatten)]
        at: At,
        summary_index: usize,
        delta: &'a str,
    },
    #[serde(rename = "response.reasoning_summary_text.done")]
    SummaryDone {
        #[serde(flatten)]
        at: At,
        summary_index: usize,
        text: &'a str,
    },
    #[serde(rename = "response.function_call_arguments.delta")]
    ArgumentsDelta {
        #[serde(flatten)]
        at: At,
        delta: &'a str,
    },
    #[serde(rename = "response.function_call_arguments.done")]
    ArgumentsDone {
        #[serde(flatten)]
        at: At,
        name: &'a str,
        arguments: &'a str,
    },
    #[serde(rename = "response.custom_tool_call_input.delta")]
    InputDelta {
        #[serde(flatten)]
        at: At,
        delta: &'a str,
    },
    #[serde(rename = "response.custom_tool_call_input.done")]
    InputDone {
        #[serde(flatten)]
        at: At,
        input: &'a str,
    },
}

impl Event<'_> {
    /// The event's name, which is also its type, and what it is in the stream.
    fn name(&self) -> (&'static str, Place) {
        match self {
            Self::Created { .. } => ("response.created", Place::Opening),
            Self::InProgress { .. } => ("response.in_progress", Place::Opening),
            Self::Completed { .. } => ("response.completed", Place::Closing),
            Self::Incomplete { .. } => ("response.incomplete", Place::Closing),
            Self::Failed { .. } => ("response.failed", Place::Closing),
            Self::ItemAdded { .. } => ("response.output_item.added", Place::Opening),
            Self::ItemDone { .. } => ("response.output_item.done", Place::Closing),
            Self::PartAdded { .. } => ("response.content_part.added", Place::Opening),
            Self::PartDone { .. } => ("response.content_part.done", Place::Closing),
            Self::TextDelta { .. } => ("response.output_text.delta", Place::Piece),
            Self::TextDone { .. } => ("response.output_text.done", Place::Closing),
            Self::RefusalDelta { .. } => ("response.refusal.delta", Place::Piece),
            Self::RefusalDone { .. } => ("response.refusal.done", Place::Closing),
            Self::SummaryPartAdded { .. } => ("response.reasoning_summary_part.added", Place::Opening),
            Self::SummaryPartDone { .. } => ("response.reasoning_summary_part.done", Place::Closing),
            Self::SummaryDelta { .. } => ("response.reasoning_summary_text.delta", Place::Piece),
            Self::SummaryDone { .. } => ("response.reasoning_summary_text.done", Place::Closing),
            Self::ArgumentsDelta { .. } => ("response.function_call_arguments.delta", Place::Piece),
            Self::ArgumentsDone { .. } => ("response.function_call_arguments.done", Place::Closing),
            Self::InputDelta { .. } => ("response.custom_tool_call_input.delta", Place::Piece),
            Self::InputDone { .. } => ("response.custom_tool_call_input.done", Place::Closing),
        }
    }
}

#[derive(Serialize)]
pub(super) struct Response<'a> {
    pub(super) id: String,
    pub(super) object: &'static str,
    pub(super) created_at: u64,
    pub(super) status: &'static str,
    pub(super) background: bool,
    pub(super) error: Option<Failure<'a>>,
    pub(super) incomplete_details: Option<Incomplete>,
    pub(super) instructions: Option<()>,
    pub(super) max_output_tokens: Option<()>,
    pub(super) model: &'a str,
    pub(super) output: Vec<Item<'a>>,
    pub(super) parallel_tool_calls: bool,
    pub(super) previous_response_id: Option<()>,
    pub(super) reasoning: Reasoning,
    pub(super) store: bool,
    pub(super) temperature: f64,
    pub(super) text: TextConfig,
    pub(super) tool_choice: &'static str,
    pub(super) tools: [(); 0],
    pub(super) top_p: f64,
    pub(super) truncation: &'static str,
    pub(super) usage: Option<Usage>,
    pub(super) user: Option<()>,
    pub(super) metadata: BTreeMap<&'static str, &'static str>,
}

#[derive(Serialize)]
pub(super) struct Failure<'a> {
    pub(super) code: &'static str,
    pub(super) message: &'a str,
}

#[derive(Serialize)]
pub(super) struct Incomplete {
    pub(super) reason: &'static str,
}

#[derive(Default, Serialize)]
pub(super) struct Reasoning {
    effort: Option<()>,
    summary: Option<()>,
}

#[derive(Serialize)]
pub(super) struct TextConfig {
    pub(super) format: Format,
}

#[derive(Serialize)]
pub(super) struct Format {
    #[serde(rename = "type")]
    pub(super) kind: &'static str,
}

#[derive(Serialize)]
pub(super) struct Usage {
    input_tokens: u64,
    input_tokens_details: InputDetails,
    output_tokens: u64,
    output_tokens_details: OutputDetails,
    total_tokens: u64,
}

#[derive(Serialize)]
struct InputDetails {
    cached_tokens: u64,
    cache_write_tokens: u64,
}

#[derive(Serialize)]
struct OutputDetails {
    reasoning_tokens: u64,
}

impl From<Used> for Usage {
    fn from(used: Used) -> Self {
        Self {
            input_tokens: used.input,
            input_tokens_details: InputDetails {
                cached_tokens: used.cached,
                cache_write_tokens: used.cache_write,
            },
            output_tokens: used.output,
            output_tokens_details: OutputDetails { reasoning_tokens: used.reasoning },
            total_tokens: used.input.saturating_add(used.output),
        }
    }
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Item<'a> {
    Reasoning { id: String, summary: Vec<Summary<'a>> },
    Message { id: String, status: &'static str, role: &'static str, content: Vec<Part<'a>> },
    FunctionCall { id: String, call_id: String, name: &'a str, arguments: &'a str, status: &'static str },
    CustomToolCall { id: String, call_id: String, name: &'a str, input: &'a str, status: &'static str },
    LocalShellCall { id: String, call_id: String, action: Exec<'a>, status: &'static str },
    ShellCall { id: String, call_id: String, action: Commands<'a>, status: &'static str },
    ApplyPatchCall { id: String, call_id: String, operation: Operation<'a>, status: &'static str },
}

#[derive(Clone, Copy, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Part<'a> {
    OutputText { text: &'a str, annotations: [(); 0], logprobs: [(); 0] },
    Refusal { refusal: &'a str },
}

#[derive(Clone, Copy, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Summary<'a> {
    SummaryText { text: &'a str },
}

#[derive(Serialize)]
pub(super) struct Exec<'a> {
    #[serde(rename = "type")]
    pub(super) kind: &'static str,
    pub(super) command: [&'a str; 3],
    pub(super) env: BTreeMap<&'static str, &'static str>,
    pub(super) timeout_ms: Option<u64>,
    pub(super) working_directory: Option<()>,
    pub(super) user: Option<()>,
}

#[derive(Serialize)]
#[expect(clippy::struct_field_names, reason = "the API's own names")]
pub(super) struct Commands<'a> {
    pub(super) commands: [&'a str; 1],
    pub(super) timeout_ms: Option<u64>,
    pub(super) max_output_length: Option<u64>,
}

#[derive(Serialize)]
pub(super) struct Operation<'a> {
    #[serde(rename = "type")]
    pub(super) kind: &'static str,
    pub(super) path: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) diff: Option<&'a str>,
}
