//! The transcript of Codex, from `codex exec --json`.

use std::collections::VecDeque;

use herma_core::transcript::TranscriptEntry;
use serde::Deserialize;

use super::arguments::{tool_call, tool_result};
use super::{JsonLine, TranscriptReader, json_line, message, reasoning};

/// The most calls that are remembered as begun.
const MAX_BEGUN: usize = 256;

/// Reads `codex exec --json`.
#[derive(Debug, Default)]
pub(crate) struct CodexTranscript {
    /// The ids of the items whose start was shown.
    begun: VecDeque<String>,
}

#[derive(Deserialize)]
#[serde(tag = "type")]
enum Line {
    #[serde(rename = "item.started")]
    Started { item: Item },
    #[serde(rename = "item.updated")]
    Updated { item: Item },
    #[serde(rename = "item.completed")]
    Completed { item: Item },
    #[serde(rename = "turn.completed")]
    TurnCompleted { usage: Usage },
    #[serde(rename = "turn.failed")]
    TurnFailed { error: Problem },
    #[serde(rename = "error")]
    Error { message: String },
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
struct Item {
    #[serde(default)]
    id: String,
    #[serde(flatten)]
    what: ItemKind,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum ItemKind {
    AgentMessage {
        text: String,
    },
    Reasoning {
        text: String,
    },
    Error {
        message: String,
    },
    CommandExecution {
        command: String,
        #[serde(default)]
        aggregated_output: String,
        exit_code: Option<i64>,
        #[serde(default)]
        status: String,
    },
    FileChange {
        changes: Vec<FileChange>,
    },
    McpToolCall {
        server: String,
        tool: String,
    },
    WebSearch {
        #[serde(default)]
        query: String,
    },
    TodoList {
        items: Vec<Todo>,
    },
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
struct FileChange {
    path: String,
}

#[derive(Deserialize)]
struct Todo {
    text: String,
}

#[derive(Deserialize)]
struct Problem {
    message: String,
}

#[derive(Deserialize)]
struct Usage {
    #[serde(default)]
    input_tokens: u64,
    #[serde(default)]
    output_tokens: u64,
}

impl TranscriptReader for CodexTranscript {
    fn line(&mut self, line: &[u8]) -> Vec<TranscriptEntry> {
        let line = match json_line(line) {
            JsonLine::Known(line) => line,
            JsonLine::Unknown => return Vec::new(),
            JsonLine::Text(entries) => return entries,
        };
        match line {
            Line::Started { item } => {
                if self.begun.len() == MAX_BEGUN {
                    self.begun.pop_front();
                }
                self.begun.push_back(item.id.clone());
                begun(&item)
            }
            Line::Updated { item: Item { what: ItemKind::TodoList { items }, .. } } => vec![plan(&items)],
            Line::Completed { item } => self.completed(item),
            Line::TurnCompleted { usage: Usage { input_tokens, output_tokens } } => {
                vec![TranscriptEntry::Usage { input_tokens, output_tokens }]
            }
            Line::TurnFailed { error: Problem { message } } | Line::Error { message } => {
                vec![TranscriptEntry::Error { text: message }]
            }
            Line::Updated { .. } | Line::Other => Vec::new(),
        }
    }
}

impl CodexTranscript {
    fn completed(&mut self, item: Item) -> Vec<TranscriptEntry> {
        let at = self.begun.iter().position(|id| *id == item.id);
        let mut entries = match at.and_then(|at| self.begun.remove(at)) {
            Some(_) => Vec::new(),
            None => begun(&item),
        };
        match item.what {
            ItemKind::AgentMessage { text } => entries.extend(message(&text)),
            ItemKind::Reasoning { text } => entries.extend(reasoning(&text)),
            ItemKind::Error { message } => entries.push(TranscriptEntry::Error { text: message }),
            ItemKind::CommandExecution { aggregated_output, exit_code, status, .. } => {
                let failed = exit_code.is_some_and(|code| code != 0) || status == "failed";
                let exit = exit_code.filter(|code| *code != 0).map(|code| format!("\n[exit {code}]"));
                let output = format!("{}{}", aggregated_output.trim_end(), exit.unwrap_or_default());
                entries.push(tool_result(Some(&item.id), output.trim_start_matches('\n'), failed));
            }
            _ => {}
        }
        entries
    }
}

/// The entries at the start of an item.
fn begun(item: &Item) -> Vec<TranscriptEntry> {
    let call = Some(item.id.as_str());
    match &item.what {
        ItemKind::CommandExecution { command, .. } => vec![tool_call(call, "shell", as_typed(command))],
        ItemKind::FileChange { changes } => changes
            .iter()
            .map(|FileChange { path }| TranscriptEntry::Edit {
                call: call.map(ToOwned::to_owned),
                path: path.clone(),
                removed: None,
                added: None,
            })
            .collect(),
        ItemKind::McpToolCall { server, tool } => {
            vec![tool_call(call, &format!("{server}.{tool}"), String::new())]
        }
        ItemKind::WebSearch { query } => vec![tool_call(call, "web_search", query.clone())],
        ItemKind::TodoList { items } => vec![plan(items)],
        ItemKind::AgentMessage { .. }
        | ItemKind::Reasoning { .. }
        | ItemKind::Error { .. }
        | ItemKind::Other => Vec::new(),
    }
}

/// The command that it hands to its shell, without the shell.
fn as_typed(command: &str) -> String {
    let words = shlex::split(command).unwrap_or_default();
    match &words[..] {
        [shell, flag, script] if shell.ends_with("sh") && ["-c", "-lc"].contains(&flag.as_str()) => {
            script.clone()
        }
        _ => command.to_owned(),
    }
}

fn plan(items: &[Todo]) -> TranscriptEntry {
    TranscriptEntry::Plan { items: items.iter().map(|Todo { text }| text.clone()).collect() }
}
