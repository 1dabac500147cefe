//! The transcript of Pi, from `pi --mode json`.

use herma_core::transcript::TranscriptEntry;
use serde::Deserialize;
use serde_json::Value;

use super::arguments::{calls, tool_result};
use super::{JsonLine, TranscriptReader, json_line, message, reasoning, text_of};

/// Reads `pi --mode json`.
#[derive(Debug)]
pub(crate) struct PiTranscript;

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Line {
    MessageEnd {
        message: Turn,
    },
    ToolExecutionStart(ToolStart),
    ToolExecutionEnd(ToolEnd),
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
struct Turn {
    role: String,
    #[serde(default)]
    content: Value,
    #[serde(rename = "errorMessage")]
    error: Option<String>,
    usage: Option<Usage>,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "camelCase")]
enum Block {
    Text {
        text: String,
    },
    Thinking {
        thinking: String,
    },
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
struct Usage {
    #[serde(default)]
    input: u64,
    #[serde(default)]
    output: u64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ToolStart {
    tool_call_id: Option<String>,
    tool_name: String,
    #[serde(default)]
    args: Value,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ToolEnd {
    tool_call_id: Option<String>,
    #[serde(default)]
    result: Value,
    #[serde(default)]
    is_error: bool,
}

impl TranscriptReader for PiTranscript {
    fn line(&mut self, line: &[u8]) -> Vec<TranscriptEntry> {
        match json_line(line) {
            JsonLine::Known(Line::MessageEnd { message }) => of_turn(message),
            JsonLine::Known(Line::ToolExecutionStart(ToolStart { tool_call_id, tool_name, args })) => {
                calls(tool_call_id.as_deref(), &tool_name, &args)
            }
            JsonLine::Known(Line::ToolExecutionEnd(ToolEnd { tool_call_id, result, is_error })) => {
                vec![tool_result(tool_call_id.as_deref(), &text_of(&result), is_error)]
            }
            JsonLine::Known(Line::Other) | JsonLine::Unknown => Vec::new(),
            JsonLine::Text(entries) => entries,
        }
    }
}

fn of_turn(turn: Turn) -> Vec<TranscriptEntry> {
    if turn.role != "assistant" {
        return Vec::new();
    }
    let blocks = turn.content.as_array().cloned().unwrap_or_default();
    let blocks = blocks.into_iter().filter_map(|block| serde_json::from_value(block).ok());
    let said = blocks.filter_map(|block| match block {
        Block::Text { text } => message(&text),
        Block::Thinking { thinking } => reasoning(&thinking),
        Block::Other => None,
    });
    let error = turn.error.map(|text| TranscriptEntry::Error { text });
    let usage = turn.usage.filter(|usage| usage.input + usage.output > 0);
    let usage =
        usage.map(|usage| TranscriptEntry::Usage { input_tokens: usage.input, output_tokens: usage.output });
    said.chain(error).chain(usage).collect()
}
