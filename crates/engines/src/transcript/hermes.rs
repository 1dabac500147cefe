//! The transcript of Hermes Agent, from the output of `hermes.py`.

use herma_core::transcript::TranscriptEntry;
use serde::Deserialize;
use serde_json::Value;

use super::arguments::{calls, tool_result};
use super::{JsonLine, TranscriptReader, json_line, message, text_of};

/// Reads the output of `hermes.py`.
#[derive(Debug)]
pub(crate) struct HermesTranscript;

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Line {
    Message {
        text: String,
    },
    Tool {
        call: Option<String>,
        name: String,
        #[serde(default)]
        arguments: Value,
    },
    ToolResult {
        call: Option<String>,
        #[serde(default)]
        output: Value,
    },
    Result {
        error: Option<String>,
        #[serde(default)]
        input_tokens: u64,
        #[serde(default)]
        output_tokens: u64,
    },
    #[serde(other)]
    Other,
}

/// The result of its terminal, which it prints as JSON.
#[derive(Deserialize)]
struct TerminalResult {
    #[serde(default)]
    output: String,
    exit_code: Option<i64>,
    error: Option<String>,
}

impl TranscriptReader for HermesTranscript {
    fn line(&mut self, line: &[u8]) -> Vec<TranscriptEntry> {
        match json_line(line) {
            JsonLine::Known(Line::Message { text }) => message(&text).into_iter().collect(),
            JsonLine::Known(Line::Tool { call, name, arguments }) => {
                calls(call.as_deref(), if name == "terminal" { "bash" } else { &name }, &arguments)
            }
            JsonLine::Known(Line::ToolResult { call, output }) => {
                vec![of_result(call.as_deref(), &text_of(&output))]
            }
            JsonLine::Known(Line::Result { error, input_tokens, output_tokens }) => {
                let error = error.map(|text| TranscriptEntry::Error { text });
                error.into_iter().chain([TranscriptEntry::Usage { input_tokens, output_tokens }]).collect()
            }
            JsonLine::Known(Line::Other) | JsonLine::Unknown => Vec::new(),
            JsonLine::Text(entries) => entries,
        }
    }
}

fn of_result(call: Option<&str>, text: &str) -> TranscriptEntry {
    let Ok(TerminalResult { output, exit_code, error }) = serde_json::from_str(text) else {
        return tool_result(call, text, false);
    };
    let code = exit_code.filter(|code| *code != 0);
    let failed = code.is_some() || error.is_some();
    let exit = code.map(|code| format!("[exit {code}]"));
    let parts = [Some(output.trim_end().to_owned()), error, exit];
    let parts: Vec<String> = parts.into_iter().flatten().filter(|part| !part.is_empty()).collect();
    tool_result(call, &parts.join("\n"), failed)
}
