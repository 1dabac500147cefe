//! Reads the transcript out of an agent's output: what it said and did, in one form for every engine.
//!
//! These readers are apart from [`crate::OutputReader`], which decides how an engine ended: nothing here can change a verdict.
//! They take any bytes, and leave out what they do not know.

mod acp;
mod arguments;
mod case;
mod claude;
mod codex;
mod hermes;
mod opencode;
mod pi;
mod protocol;

pub(crate) use acp::AcpTranscript;
pub(crate) use case::CaseTranscript;
pub(crate) use claude::ClaudeTranscript;
pub(crate) use codex::CodexTranscript;
pub(crate) use hermes::HermesTranscript;
pub(crate) use opencode::OpenCodeTranscript;
pub(crate) use pi::PiTranscript;
pub(crate) use protocol::ProtocolTranscript;

use herma_core::transcript::TranscriptEntry;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Reads the transcript out of the output of one run.
pub trait TranscriptReader: Send {
    /// The entries that this line adds.
    fn line(&mut self, line: &[u8]) -> Vec<TranscriptEntry>;

    /// The entries that were held back, at the end of the output.
    fn finish(&mut self) -> Vec<TranscriptEntry> {
        Vec::new()
    }
}

/// A line of an agent that prints one JSON object a line.
enum JsonLine<T> {
    /// A line of the known form.
    Known(T),
    /// JSON of another form: it is left out, since it is not for people.
    Unknown,
    /// No JSON, such as a warning of the agent's runtime.
    Text(Vec<TranscriptEntry>),
}

fn json_line<T: DeserializeOwned>(line: &[u8]) -> JsonLine<T> {
    let text = String::from_utf8_lossy(line.trim_ascii());
    if !text.starts_with('{') {
        return JsonLine::Text(output(&text).into_iter().collect());
    }
    serde_json::from_str(&text).map_or(JsonLine::Unknown, JsonLine::Known)
}

/// A line without structure; none if it is empty.
fn output(text: &str) -> Option<TranscriptEntry> {
    let text = text.trim_end();
    (!text.is_empty()).then(|| TranscriptEntry::Output { text: text.to_owned() })
}

fn message(text: &str) -> Option<TranscriptEntry> {
    let text = text.trim();
    (!text.is_empty()).then(|| TranscriptEntry::Message { text: text.to_owned() })
}

fn reasoning(text: &str) -> Option<TranscriptEntry> {
    let text = text.trim();
    (!text.is_empty()).then(|| TranscriptEntry::Reasoning { text: text.to_owned() })
}

/// The text of a result: agents give a text, a block with one, or a list of blocks.
fn text_of(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => blocks.iter().map(text_of).collect(),
        Value::Object(block) => ["text", "content", "output"]
            .iter()
            .find_map(|key| block.get(*key))
            .map(text_of)
            .unwrap_or_default(),
        Value::Null | Value::Bool(_) | Value::Number(_) => String::new(),
    }
}
