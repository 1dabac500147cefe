//! The transcript of Claude Code, from `--output-format stream-json`.

use herma_core::transcript::TranscriptEntry;
use serde::Deserialize;
use serde_json::Value;

use super::arguments::{calls, tool_result};
use super::{JsonLine, TranscriptReader, json_line, message, reasoning, text_of};

/// Reads `claude -p --output-format stream-json`.
#[derive(Debug)]
pub(crate) struct ClaudeTranscript;

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Line {
    Assistant {
        message: Turn,
    },
    User {
        message: Turn,
    },
    System(System),
    Result(Ended),
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
struct Turn {
    /// The prompt is a text; turns are blocks.
    content: Value,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Block {
    Text {
        text: String,
    },
    Thinking {
        thinking: String,
    },
    ToolUse {
        id: Option<String>,
        name: String,
        #[serde(default)]
        input: Value,
    },
    ToolResult {
        tool_use_id: Option<String>,
        #[serde(default)]
        content: Value,
        #[serde(default)]
        is_error: bool,
    },
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
struct System {
    subtype: String,
    error_status: Option<u64>,
    error: Option<String>,
}

#[derive(Deserialize)]
struct Ended {
    #[serde(default)]
    is_error: bool,
    result: Option<String>,
    usage: Option<Usage>,
}

#[derive(Deserialize)]
struct Usage {
    #[serde(default)]
    input_tokens: u64,
    #[serde(default)]
    output_tokens: u64,
}

impl TranscriptReader for ClaudeTranscript {
    fn line(&mut self, line: &[u8]) -> Vec<TranscriptEntry> {
        match json_line(line) {
            JsonLine::Known(Line::Assistant { message } | Line::User { message }) => {
                let blocks = message.content.as_array().cloned().unwrap_or_default();
                let blocks = blocks.into_iter().filter_map(|block| serde_json::from_value(block).ok());
                blocks.flat_map(of_block).collect()
            }
            JsonLine::Known(Line::System(system)) => of_system(&system).into_iter().collect(),
            JsonLine::Known(Line::Result(ended)) => of_end(ended),
            JsonLine::Known(Line::Other) | JsonLine::Unknown => Vec::new(),
            JsonLine::Text(entries) => entries,
        }
    }
}

fn of_block(block: Block) -> Vec<TranscriptEntry> {
    match block {
        Block::Text { text } => message(&text).into_iter().collect(),
        Block::Thinking { thinking } => reasoning(&thinking).into_iter().collect(),
        Block::ToolUse { id, name, input } => calls(id.as_deref(), &name, &input),
        Block::ToolResult { tool_use_id, content, is_error } => {
            vec![tool_result(tool_use_id.as_deref(), &text_of(&content), is_error)]
        }
        Block::Other => Vec::new(),
    }
}

fn of_system(system: &System) -> Option<TranscriptEntry> {
    let status = system.error_status.map(|status| format!("{status}: ")).unwrap_or_default();
    let error = system.error.as_deref().unwrap_or("no cause given");
    (system.subtype == "api_retry")
        .then(|| TranscriptEntry::Error { text: format!("{status}{error}; it tries again") })
}

/// The text of the result repeats the last message, except for an error.
fn of_end(ended: Ended) -> Vec<TranscriptEntry> {
    let error = ended.result.filter(|_| ended.is_error).map(|text| TranscriptEntry::Error { text });
    let usage = ended.usage.map(|usage| TranscriptEntry::Usage {
        input_tokens: usage.input_tokens,
        output_tokens: usage.output_tokens,
    });
    error.into_iter().chain(usage).collect()
}
