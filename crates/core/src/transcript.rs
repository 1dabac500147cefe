//! The transcript of a run: the agent's words and actions, in one form for every engine.
//!
//! herma writes it from the agent's own output. It is for people to read; no check relies on it.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::engine::EngineName;
use crate::id::RunId;

/// The most bytes of one text in a transcript. A longer one is cut, and says how much is left out.
pub const MAX_TEXT_BYTES: usize = 32 << 10;

/// The first line of a transcript.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TranscriptHead {
    /// `herma.transcript/v1`.
    pub schema: String,
    /// The run.
    pub run_id: RunId,
    /// The engine whose output it is made from.
    pub engine: EngineName,
    /// The origin of the words.
    pub words_of: WordsOf,
}

impl TranscriptHead {
    /// The name of the schema.
    pub const SCHEMA: &'static str = "herma.transcript/v1";

    /// The head of the transcript of a run.
    #[must_use]
    pub fn new(run_id: RunId, engine: EngineName) -> Self {
        Self { schema: Self::SCHEMA.to_owned(), run_id, engine, words_of: WordsOf::Agent }
    }
}

/// The origin of the words in a transcript.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WordsOf {
    /// The agent: what it reports of itself, which proves nothing.
    Agent,
}

/// Any later line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TranscriptLine {
    /// The time at which herma read it.
    pub ts: Timestamp,
    /// The entry.
    #[serde(flatten)]
    pub entry: TranscriptEntry,
}

/// One thing that the agent said or did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum TranscriptEntry {
    /// A message for people.
    Message {
        /// The text.
        text: String,
    },
    /// A summary of its reasoning.
    Reasoning {
        /// The text.
        text: String,
    },
    /// A tool call.
    ToolCall {
        /// The agent's id of the call, by which a result refers to it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        call: Option<String>,
        /// The tool.
        tool: String,
        /// The arguments, as one would type them.
        arguments: String,
    },
    /// An edit of a file by a tool.
    Edit {
        /// The agent's id of the call.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        call: Option<String>,
        /// The file, as the agent names it.
        path: String,
        /// The text that is replaced; none for a file that is written whole or where the agent does not tell.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        removed: Option<String>,
        /// The new text; none where the agent does not tell.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        added: Option<String>,
    },
    /// The result of a tool call.
    ToolResult {
        /// The agent's id of the call.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        call: Option<String>,
        /// The output of the tool.
        output: String,
        /// Whether the agent calls it a failure.
        failed: bool,
    },
    /// Its plan.
    Plan {
        /// The items, in order.
        items: Vec<String>,
    },
    /// The tokens that it reports; the real usage is in the router's record.
    Usage {
        /// Input tokens.
        input_tokens: u64,
        /// Output tokens.
        output_tokens: u64,
    },
    /// An error that it reports.
    Error {
        /// The text.
        text: String,
    },
    /// Output without structure.
    Output {
        /// The line.
        text: String,
    },
    /// A tool call that herma denied. These are herma's own words, from the run's events.
    Denial {
        /// The tool.
        tool: String,
        /// The arguments, as one would type them.
        arguments: String,
        /// The reason.
        reason: String,
    },
    /// The transcript ends here, though the agent went on: it has reached its maximum size.
    LeftOut {},
}

impl TranscriptEntry {
    /// Applies a function to each text of the entry.
    #[must_use]
    pub fn map_texts(mut self, change: impl Fn(&str) -> String) -> Self {
        let texts: Vec<&mut String> = match &mut self {
            Self::Message { text }
            | Self::Reasoning { text }
            | Self::Error { text }
            | Self::Output { text } => vec![text],
            Self::ToolCall { call, tool, arguments } => call.iter_mut().chain([tool, arguments]).collect(),
            Self::Edit { call, path, removed, added } => {
                call.iter_mut().chain([path]).chain(removed).chain(added).collect()
            }
            Self::ToolResult { call, output, .. } => call.iter_mut().chain([output]).collect(),
            Self::Plan { items } => items.iter_mut().collect(),
            Self::Denial { tool, arguments, reason } => vec![tool, arguments, reason],
            Self::Usage { .. } | Self::LeftOut {} => Vec::new(),
        };
        for text in texts {
            *text = change(text);
        }
        self
    }

    /// The entry with each text cut to [`MAX_TEXT_BYTES`].
    #[must_use]
    pub fn bounded(self) -> Self {
        self.map_texts(cut)
    }
}

fn cut(text: &str) -> String {
    if text.len() <= MAX_TEXT_BYTES {
        return text.to_owned();
    }
    let end = text.floor_char_boundary(MAX_TEXT_BYTES);
    format!("{}\n[herma left out {} bytes]", &text[..end], text.len() - end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_is_cut_at_a_character_and_says_so() {
        let text = "\u{1f642}".repeat(MAX_TEXT_BYTES);
        let TranscriptEntry::Message { text } = (TranscriptEntry::Message { text }).bounded() else {
            unreachable!()
        };
        let (kept, note) = text.split_once('\n').unwrap();
        assert_eq!((kept.len(), note), (MAX_TEXT_BYTES, "[herma left out 98304 bytes]"));
    }

    #[test]
    fn every_text_of_an_entry_is_changed() {
        let some = || Some("a".to_owned());
        let text = || "a".to_owned();
        let entries = [
            TranscriptEntry::Message { text: text() },
            TranscriptEntry::Reasoning { text: text() },
            TranscriptEntry::ToolCall { call: some(), tool: text(), arguments: text() },
            TranscriptEntry::Edit { call: some(), path: text(), removed: some(), added: some() },
            TranscriptEntry::ToolResult { call: some(), output: text(), failed: false },
            TranscriptEntry::Plan { items: vec![text(), text()] },
            TranscriptEntry::Error { text: text() },
            TranscriptEntry::Output { text: text() },
            TranscriptEntry::Denial { tool: text(), arguments: text(), reason: text() },
        ];
        for entry in entries {
            let changed = serde_json::to_string(&entry.map_texts(|_| "b".to_owned())).unwrap();
            assert!(!changed.contains("\"a\""), "{changed}");
        }
    }

    #[test]
    fn a_line_is_flat_and_reads_back() {
        let entry = TranscriptEntry::Usage { input_tokens: 1, output_tokens: 2 };
        let line = TranscriptLine { ts: Timestamp::UNIX_EPOCH, entry };
        let text = serde_json::to_string(&line).unwrap();
        assert_eq!(
            text,
            r#"{"ts":"1970-01-01T00:00:00Z","kind":"usage","input_tokens":1,"output_tokens":2}"#
        );
        assert_eq!(serde_json::from_str::<TranscriptLine>(&text).unwrap(), line);
    }
}
