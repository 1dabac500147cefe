//! The transcript of the agent behind `opencode run --format json`.

use herma_core::transcript::TranscriptEntry;
use serde::Deserialize;
use serde_json::Value;

use super::arguments::{calls, tool_result};
use super::{JsonLine, TranscriptReader, json_line, message, reasoning};

/// Reads `opencode run --format json`.
#[derive(Debug)]
pub(crate) struct OpenCodeTranscript;

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Line {
    Text {
        part: Text,
    },
    Reasoning {
        part: Text,
    },
    ToolUse {
        part: Tool,
    },
    StepFinish {
        part: StepFinish,
    },
    Error {
        error: Problem,
    },
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
struct Text {
    text: String,
}

#[derive(Deserialize)]
struct Tool {
    #[serde(rename = "tool")]
    name: String,
    #[serde(rename = "callID")]
    call: Option<String>,
    state: ToolState,
}

#[derive(Deserialize)]
struct ToolState {
    #[serde(default)]
    status: String,
    #[serde(default)]
    input: Value,
    output: Option<String>,
    error: Option<String>,
}

#[derive(Deserialize)]
struct StepFinish {
    #[serde(default)]
    tokens: Tokens,
}

#[derive(Default, Deserialize)]
struct Tokens {
    #[serde(default)]
    input: u64,
    #[serde(default)]
    output: u64,
}

#[derive(Deserialize)]
struct Problem {
    name: String,
    data: Option<Detail>,
}

#[derive(Deserialize)]
struct Detail {
    message: Option<String>,
}

impl TranscriptReader for OpenCodeTranscript {
    fn line(&mut self, line: &[u8]) -> Vec<TranscriptEntry> {
        let line = match json_line(line) {
            JsonLine::Known(line) => line,
            JsonLine::Unknown => return Vec::new(),
            JsonLine::Text(entries) => return entries,
        };
        match line {
            Line::Text { part } => message(&part.text).into_iter().collect(),
            Line::Reasoning { part } => reasoning(&part.text).into_iter().collect(),
            Line::ToolUse { part: Tool { name, call, state } } => {
                let mut entries = calls(call.as_deref(), &name, &state.input);
                let failed = state.status == "error";
                let output = state.error.or(state.output).unwrap_or_default();
                entries.push(tool_result(call.as_deref(), &output, failed));
                entries
            }
            Line::StepFinish { part: StepFinish { tokens } } => {
                vec![TranscriptEntry::Usage { input_tokens: tokens.input, output_tokens: tokens.output }]
            }
            Line::Error { error: Problem { name, data } } => {
                let detail = data.and_then(|data| data.message).map(|detail| format!(": {detail}"));
                vec![TranscriptEntry::Error { text: format!("{name}{}", detail.unwrap_or_default()) }]
            }
            Line::Other => Vec::new(),
        }
    }
}
