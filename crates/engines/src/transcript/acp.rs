//! The transcript of an agent that speaks ACP, from its side of the dialogue.

use std::collections::VecDeque;
use std::mem;

use herma_core::tool::ToolAction;
use herma_core::transcript::TranscriptEntry;
use serde::Deserialize;
use serde_json::Value;

use super::arguments::{calls, tool_call, tool_result};
use super::{JsonLine, TranscriptReader, json_line, message, reasoning, text_of};

/// The most calls that are remembered.
const MAX_CALLS: usize = 256;
/// The most text that is held back: agents stream fragments of words.
const MAX_HELD_BYTES: usize = 64 << 10;

/// Reads the messages of an agent in an ACP dialogue.
#[derive(Debug, Default)]
pub(crate) struct AcpTranscript {
    said: String,
    thought: String,
    calls: VecDeque<Call>,
    /// A resumed agent replays its earlier session before it has answered `session/load`.
    replays: bool,
}

/// A call whose start was shown, or waits for its arguments.
#[derive(Debug)]
struct Call {
    id: String,
    kind: String,
    shown: bool,
    ended: bool,
    streamed: String,
}

#[derive(Deserialize)]
struct Message {
    id: Option<Value>,
    method: Option<String>,
    #[serde(default)]
    params: Params,
    result: Option<Value>,
    error: Option<Problem>,
}

#[derive(Default, Deserialize)]
struct Params {
    update: Option<Value>,
}

#[derive(Deserialize)]
struct Problem {
    #[serde(default)]
    message: String,
}

#[derive(Deserialize)]
#[serde(tag = "sessionUpdate", rename_all = "snake_case")]
enum Update {
    AgentMessageChunk {
        content: Value,
    },
    AgentThoughtChunk {
        content: Value,
    },
    ToolCall(CallUpdate),
    #[serde(rename = "tool_call_update")]
    ToolCallChanged(CallUpdate),
    Plan {
        entries: Vec<PlanEntry>,
    },
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
struct PlanEntry {
    content: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CallUpdate {
    tool_call_id: String,
    title: Option<String>,
    kind: Option<String>,
    status: Option<String>,
    #[serde(default)]
    raw_input: Value,
    #[serde(default)]
    content: Vec<Part>,
    /// Codex streams the output of its terminal here.
    #[serde(default, rename = "_meta")]
    meta: Value,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Part {
    #[serde(rename = "content")]
    Block { content: Value },
    #[serde(rename_all = "camelCase")]
    Diff { path: String, old_text: Option<String>, new_text: Option<String> },
    #[serde(other)]
    Other,
}

impl AcpTranscript {
    /// The transcript of an agent that resumes a session, and first replays it.
    pub(crate) fn of_resumed() -> Self {
        Self { replays: true, ..Self::default() }
    }

    fn update(&mut self, update: Value) -> Vec<TranscriptEntry> {
        let Ok(update) = serde_json::from_value::<Update>(update) else { return Vec::new() };
        match update {
            Update::AgentMessageChunk { content } => {
                let mut entries = self.take_thought();
                self.said.push_str(&text_of(&content));
                if self.said.len() > MAX_HELD_BYTES {
                    entries.extend(self.take_said());
                }
                entries
            }
            Update::AgentThoughtChunk { content } => {
                let mut entries = self.take_said();
                self.thought.push_str(&text_of(&content));
                if self.thought.len() > MAX_HELD_BYTES {
                    entries.extend(self.take_thought());
                }
                entries
            }
            Update::ToolCall(call) | Update::ToolCallChanged(call) => {
                let mut entries = self.take_text();
                entries.extend(self.call(&call));
                entries
            }
            Update::Plan { entries: items } => {
                let mut entries = self.take_text();
                entries.push(TranscriptEntry::Plan {
                    items: items.into_iter().map(|entry| entry.content).collect(),
                });
                entries
            }
            Update::Other => Vec::new(),
        }
    }

    fn call(&mut self, update: &CallUpdate) -> Vec<TranscriptEntry> {
        let at = self.calls.iter().position(|call| call.id == update.tool_call_id);
        let at = at.unwrap_or_else(|| {
            if self.calls.len() == MAX_CALLS {
                self.calls.pop_front();
            }
            let id = update.tool_call_id.clone();
            self.calls.push_back(Call {
                id,
                kind: "tool".to_owned(),
                shown: false,
                ended: false,
                streamed: String::new(),
            });
            self.calls.len() - 1
        });
        let Some(call) = self.calls.get_mut(at) else { return Vec::new() };
        if let Some(kind) = &update.kind {
            call.kind.clone_from(kind);
        }
        if let Some(data) = update.meta["terminal_output_delta"]["data"].as_str()
            && call.streamed.len() < MAX_HELD_BYTES
        {
            call.streamed.push_str(data);
        }
        let status = update.status.as_deref().unwrap_or_default();
        let ends = matches!(status, "completed" | "failed");
        let mut entries = Vec::new();
        if !call.shown && (ends || is_complete(update)) {
            call.shown = true;
            entries.extend(start(call, update));
        }
        if ends && !mem::replace(&mut call.ended, true) {
            let output: String = update.content.iter().map(shown_text).collect();
            let output = if output.is_empty() { mem::take(&mut call.streamed) } else { output };
            entries.push(tool_result(Some(&call.id), output.trim(), status == "failed"));
        }
        entries
    }

    fn take_said(&mut self) -> Vec<TranscriptEntry> {
        message(&mem::take(&mut self.said)).into_iter().collect()
    }

    fn take_thought(&mut self) -> Vec<TranscriptEntry> {
        reasoning(&mem::take(&mut self.thought)).into_iter().collect()
    }

    fn take_text(&mut self) -> Vec<TranscriptEntry> {
        let mut entries = self.take_thought();
        entries.extend(self.take_said());
        entries
    }
}

/// Whether an update has the arguments of its call: agents announce a call first and send its input later.
fn is_complete(update: &CallUpdate) -> bool {
    let has_input = update.raw_input.as_object().is_some_and(|input| input.keys().any(|key| key != "cwd"));
    has_input || !update.content.is_empty()
}

fn start(call: &Call, update: &CallUpdate) -> Vec<TranscriptEntry> {
    let id = Some(call.id.as_str());
    let diffs: Vec<TranscriptEntry> = update.content.iter().filter_map(|part| diff(&call.id, part)).collect();
    if !diffs.is_empty() {
        return diffs;
    }
    let tool = if call.kind == "execute" { "bash" } else { &call.kind };
    if update.raw_input.as_object().is_some_and(|input| !input.is_empty()) {
        return calls(id, tool, &update.raw_input);
    }
    let tool = if ToolAction::of_tool(tool) == ToolAction::Shell { "shell" } else { tool };
    vec![tool_call(id, tool, update.title.clone().unwrap_or_default())]
}

fn diff(call: &str, part: &Part) -> Option<TranscriptEntry> {
    let Part::Diff { path, old_text, new_text } = part else { return None };
    Some(TranscriptEntry::Edit {
        call: Some(call.to_owned()),
        path: path.clone(),
        removed: old_text.clone(),
        added: new_text.clone(),
    })
}

fn shown_text(part: &Part) -> String {
    match part {
        Part::Block { content } => text_of(content),
        Part::Diff { .. } | Part::Other => String::new(),
    }
}

impl TranscriptReader for AcpTranscript {
    fn line(&mut self, line: &[u8]) -> Vec<TranscriptEntry> {
        let message: Message = match json_line(line) {
            JsonLine::Known(message) => message,
            JsonLine::Unknown => return Vec::new(),
            JsonLine::Text(entries) => return entries,
        };
        if message.method.as_deref() == Some("session/update") {
            let update = message.params.update.filter(|_| !self.replays);
            return update.map(|update| self.update(update)).unwrap_or_default();
        }
        if message.method.is_some() || message.id.is_none() {
            return Vec::new();
        }
        // herma's requests are numbered: 2 opens the session, 3 is the prompt.
        if message.id.as_ref().and_then(Value::as_u64) >= Some(2) {
            self.replays = false;
        }
        let mut entries = self.take_text();
        entries.extend(message.error.map(|problem| TranscriptEntry::Error { text: problem.message }));
        let usage = message.result.as_ref().map(|result| &result["usage"]).filter(|usage| usage.is_object());
        entries.extend(usage.map(|usage| TranscriptEntry::Usage {
            input_tokens: usage["inputTokens"].as_u64().unwrap_or_default(),
            output_tokens: usage["outputTokens"].as_u64().unwrap_or_default(),
        }));
        entries
    }

    fn finish(&mut self) -> Vec<TranscriptEntry> {
        self.take_text()
    }
}
