//! Responses.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;

use super::pieces::pieces;
use super::responses_wire::{
    At, Commands, Event, Exec, Failure, Format, Incomplete, Item, Numbered, Operation, Part, Reasoning,
    Response, Summary, TextConfig,
};
use super::sse::{self, json};
use crate::reply::{Block, Reply};
use crate::tools::{Input, ToolCall};
use crate::turn::Stop;
use herma_dialect::ApiError;

/// How much of an item is there.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// Nothing yet.
    Begun,
    /// All of it.
    Full,
}

/// The body.
pub(super) fn whole(reply: &Reply) -> Vec<u8> {
    json(&ended(reply))
}

/// The stream.
pub(super) fn events(reply: &Reply, chunk: NonZeroUsize) -> Vec<sse::Event> {
    let mut stream = Stream(Vec::new());
    stream.push(Event::Created { response: response(reply, "in_progress") });
    stream.push(Event::InProgress { response: response(reply, "in_progress") });
    for (output_index, block) in reply.blocks.iter().enumerate() {
        stream.push(Event::ItemAdded { output_index, item: item(reply, output_index, State::Begun) });
        stream.content(block, &at(reply, output_index), chunk);
        stream.push(Event::ItemDone { output_index, item: item(reply, output_index, State::Full) });
    }
    let response = ended(reply);
    stream.push(match response.incomplete_details {
        Some(_) => Event::Incomplete { response },
        None => Event::Completed { response },
    });
    stream.0
}

/// One more piece of text, in the last item.
pub(super) fn more_text(reply: &Reply, so_far: usize) -> Vec<u8> {
    let at = at(reply, reply.blocks.len().saturating_sub(1));
    let event = Event::TextDelta { at, content_index: 0, delta: "more ", logprobs: [] };
    Numbered { event, sequence_number: so_far }.sse().bytes
}

/// The event by which a stream fails.
pub(super) fn failed(reply: &Reply, so_far: usize, error: &ApiError) -> Vec<u8> {
    let mut response = response(reply, "failed");
    let code = if error.status == 429 { "rate_limit_exceeded" } else { "server_error" };
    response.error = Some(Failure { code, message: &error.message });
    Numbered { event: Event::Failed { response }, sequence_number: so_far }.sse().bytes
}

struct Stream(Vec<sse::Event>);

impl Stream {
    fn push(&mut self, event: Event<'_>) {
        let sequence_number = self.0.len();
        self.0.push(Numbered { event, sequence_number }.sse());
    }

    /// The events between the beginning and the end of an item.
    fn content(&mut self, block: &Block, at: &At, chunk: NonZeroUsize) {
        let (content_index, summary_index, logprobs) = (0, 0, []);
        let at = || at.clone();
        match block {
            Block::Think(text) => {
                let part = |text| Summary::SummaryText { text };
                self.push(Event::SummaryPartAdded { at: at(), summary_index, part: part("") });
                for delta in pieces(text, chunk) {
                    self.push(Event::SummaryDelta { at: at(), summary_index, delta });
                }
                self.push(Event::SummaryDone { at: at(), summary_index, text });
                self.push(Event::SummaryPartDone { at: at(), summary_index, part: part(text) });
            }
            Block::Say(text) => {
                self.push(Event::PartAdded { at: at(), content_index, part: output_text("") });
                for delta in pieces(text, chunk) {
                    self.push(Event::TextDelta { at: at(), content_index, delta, logprobs });
                }
                self.push(Event::TextDone { at: at(), content_index, text, logprobs });
                self.push(Event::PartDone { at: at(), content_index, part: output_text(text) });
            }
            Block::Refuse(refusal) => {
                self.push(Event::PartAdded { at: at(), content_index, part: Part::Refusal { refusal: "" } });
                for delta in pieces(refusal, chunk) {
                    self.push(Event::RefusalDelta { at: at(), content_index, delta });
                }
                self.push(Event::RefusalDone { at: at(), content_index, refusal });
                self.push(Event::PartDone { at: at(), content_index, part: Part::Refusal { refusal } });
            }
            Block::Call(ToolCall { name, input: Input::Arguments(arguments) }) => {
                for delta in pieces(arguments, chunk) {
                    self.push(Event::ArgumentsDelta { at: at(), delta });
                }
                self.push(Event::ArgumentsDone { at: at(), name, arguments });
            }
            Block::Call(ToolCall { input: Input::Freeform(input), .. }) => {
                for delta in pieces(input, chunk) {
                    self.push(Event::InputDelta { at: at(), delta });
                }
                self.push(Event::InputDone { at: at(), input });
            }
            // The provider's own tools come in one piece.
            Block::Call(_) => {}
        }
    }
}

fn at(reply: &Reply, output_index: usize) -> At {
    At { item_id: item_id(reply, output_index), output_index }
}

fn item_id(reply: &Reply, index: usize) -> String {
    let prefix = match reply.blocks.get(index) {
        Some(Block::Think(_)) => "rs_",
        Some(Block::Say(_) | Block::Refuse(_)) | None => "msg_",
        Some(Block::Call(call)) => match call.input {
            Input::Arguments(_) => "fc_",
            Input::Freeform(_) => "ctc_",
            Input::LocalShell(_) => "lsh_",
            Input::Shell(_) => "sh_",
            Input::ApplyPatch(_) => "apc_",
        },
    };
    reply.ids.id(prefix, index)
}

fn item(reply: &Reply, index: usize, state: State) -> Item<'_> {
    let id = item_id(reply, index);
    let full = state == State::Full;
    let last = index + 1 == reply.blocks.len();
    let status = match reply.stop {
        _ if !full => "in_progress",
        Stop::Length | Stop::ContentFilter if last => "incomplete",
        _ => "completed",
    };
    let message =
        |part| Item::Message { id: id.clone(), status, role: "assistant", content: Vec::from_iter(part) };
    let shown = |text| if full { text } else { "" };
    match &reply.blocks[index] {
        Block::Think(text) => {
            let summary = full.then_some(Summary::SummaryText { text }).into_iter().collect();
            Item::Reasoning { id, summary }
        }
        Block::Say(text) => message(full.then(|| output_text(text))),
        Block::Refuse(refusal) => message(full.then_some(Part::Refusal { refusal })),
        Block::Call(ToolCall { name, input }) => {
            let call_id = reply.ids.id("call_", index);
            match input {
                Input::Arguments(text) => {
                    Item::FunctionCall { id, call_id, name, arguments: shown(text), status }
                }
                Input::Freeform(text) => {
                    Item::CustomToolCall { id, call_id, name, input: shown(text), status }
                }
                Input::LocalShell(command) => {
                    let action = Exec {
                        kind: "exec",
                        command: ["bash", "-lc", command],
                        env: BTreeMap::new(),
                        timeout_ms: None,
                        working_directory: None,
                        user: None,
                    };
                    Item::LocalShellCall { id, call_id, action, status }
                }
                Input::Shell(command) => {
                    let action = Commands { commands: [command], timeout_ms: None, max_output_length: None };
                    Item::ShellCall { id, call_id, action, status }
                }
                Input::ApplyPatch(change) => {
                    let diff = change.diff.as_deref().map(shown);
                    let operation = Operation { kind: change.kind, path: &change.path, diff };
                    Item::ApplyPatchCall { id, call_id, operation, status }
                }
            }
        }
    }
}

fn output_text(text: &str) -> Part<'_> {
    Part::OutputText { text, annotations: [], logprobs: [] }
}

/// The response at its end.
fn ended(reply: &Reply) -> Response<'_> {
    let reason = match reply.stop {
        Stop::Length => Some("max_output_tokens"),
        Stop::ContentFilter => Some("content_filter"),
        Stop::End | Stop::Tools | Stop::Refusal => None,
    };
    let mut response = response(reply, if reason.is_some() { "incomplete" } else { "completed" });
    response.incomplete_details = reason.map(|reason| Incomplete { reason });
    response.output = (0..reply.blocks.len()).map(|index| item(reply, index, State::Full)).collect();
    response.usage = Some(reply.used.into());
    response
}

fn response<'a>(reply: &'a Reply, status: &'static str) -> Response<'a> {
    Response {
        id: reply.ids.id("resp_", 0),
        object: "response",
        created_at: reply.ids.created(),
        status,
        background: false,
        error: None,
        incomplete_details: None,
        instructions: None,
        max_output_tokens: None,
        model: &reply.model,
        output: Vec::new(),
        parallel_tool_calls: true,
        previous_response_id: None,
        reasoning: Reasoning::default(),
        store: false,
        temperature: 1.0,
        text: TextConfig { format: Format { kind: "text" } },
        tool_choice: "auto",
        tools: [],
        top_p: 1.0,
        truncation: "disabled",
        usage: None,
        user: None,
        metadata: BTreeMap::new(),
    }
}
