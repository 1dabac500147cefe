//! Tool calls in a readable form: a command as it was typed, an edit as old and new text, other arguments by name.

use herma_core::tool::ToolAction;
use herma_core::transcript::TranscriptEntry;
use serde_json::Value;

use crate::subject::stated;

/// The names under which agents give the path, the replaced and the new text of an edit.
const PATHS: [&str; 5] = ["file_path", "filePath", "path", "notebook_path", "file"];
const REMOVED: [&str; 5] = ["old_string", "oldString", "oldText", "old_text", "old_str"];
const ADDED: [&str; 8] =
    ["new_string", "newString", "newText", "new_text", "new_str", "content", "new_source", "file_text"];
/// The names of a list of edits of one file.
const SEVERAL: [&str; 2] = ["edits", "changes"];

/// The tool name of every call that runs a command.
const SHELL: &str = "shell";

/// The entries of a tool call: one for each edit, or one for the call.
pub(super) fn calls(call: Option<&str>, tool: &str, input: &Value) -> Vec<TranscriptEntry> {
    let action = ToolAction::of_tool(tool);
    let edits = if action == ToolAction::Write { edits(call, input) } else { Vec::new() };
    if !edits.is_empty() {
        return edits;
    }
    let tool = if action == ToolAction::Shell { SHELL } else { tool };
    vec![tool_call(call, tool, readable(action, input))]
}

pub(super) fn tool_call(call: Option<&str>, tool: &str, arguments: String) -> TranscriptEntry {
    TranscriptEntry::ToolCall { call: call.map(ToOwned::to_owned), tool: tool.to_owned(), arguments }
}

pub(super) fn tool_result(call: Option<&str>, output: &str, failed: bool) -> TranscriptEntry {
    TranscriptEntry::ToolResult {
        call: call.map(ToOwned::to_owned),
        output: output.trim_end().to_owned(),
        failed,
    }
}

fn edits(call: Option<&str>, input: &Value) -> Vec<TranscriptEntry> {
    let Some(path) = text_under(input, &PATHS) else { return Vec::new() };
    let several = SEVERAL.iter().find_map(|key| input[*key].as_array());
    let parts: Vec<&Value> = several.map_or_else(|| vec![input], |parts| parts.iter().collect());
    let edit = |part: &Value| {
        let (removed, added) = (text_under(part, &REMOVED), text_under(part, &ADDED));
        (removed.is_some() || added.is_some()).then(|| TranscriptEntry::Edit {
            call: call.map(ToOwned::to_owned),
            path: path.clone(),
            removed,
            added,
        })
    };
    parts.into_iter().filter_map(edit).collect()
}

fn text_under(input: &Value, names: &[&str]) -> Option<String> {
    names.iter().find_map(|name| input[*name].as_str()).map(ToOwned::to_owned)
}

/// The arguments of a call: the command alone, a single value alone, or `name: value` pairs.
fn readable(action: ToolAction, input: &Value) -> String {
    if matches!(action, ToolAction::Shell)
        && let Some(command) = ["command", "cmd"].iter().find_map(|key| input[*key].as_str())
    {
        return command.to_owned();
    }
    match input {
        Value::Object(arguments) if arguments.len() == 1 => arguments.values().map(flat).collect(),
        Value::Object(_) => flat(input),
        _ => stated(action, input).unwrap_or_default(),
    }
}

fn flat(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Bool(_) | Value::Number(_) => value.to_string(),
        Value::Array(items) => items.iter().map(flat).collect::<Vec<_>>().join(", "),
        Value::Object(fields) => {
            let pairs = fields.iter().map(|(name, value)| format!("{name}: {}", flat(value)));
            pairs.collect::<Vec<_>>().join(", ")
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn edit(path: &str, removed: Option<&str>, added: Option<&str>) -> TranscriptEntry {
        let [removed, added] = [removed, added].map(|text| text.map(ToOwned::to_owned));
        TranscriptEntry::Edit { call: None, path: path.to_owned(), removed, added }
    }

    #[test]
    fn an_edit_of_any_agent_shows_old_and_new_text() {
        for (tool, input) in [
            ("Edit", json!({ "file_path": "a", "old_string": "x", "new_string": "y" })),
            ("edit", json!({ "filePath": "a", "oldString": "x", "newString": "y" })),
            ("edit", json!({ "path": "a", "edits": [{ "oldText": "x", "newText": "y" }] })),
        ] {
            assert_eq!(calls(None, tool, &input), [edit("a", Some("x"), Some("y"))], "{input}");
        }
        let written = calls(None, "Write", &json!({ "file_path": "a", "content": "y" }));
        assert_eq!(written, [edit("a", None, Some("y"))]);
    }

    #[test]
    fn a_call_is_readable_and_no_json() {
        for (tool, input, shown) in [
            ("Bash", json!({ "command": "ls -l", "description": "list" }), ("shell", "ls -l")),
            ("Read", json!({ "file_path": "src/a.rs" }), ("Read", "src/a.rs")),
            (
                "Grep",
                // Whether a map keeps its order depends on features of serde_json that other crates choose.
                json!({ "n": 3, "paths": ["a", "b"], "pattern": "x" }),
                ("Grep", "n: 3, paths: a, b, pattern: x"),
            ),
            ("Edit", json!({ "file_path": "a" }), ("Edit", "a")),
            ("later", json!(null), ("later", "")),
            ("later", json!("all of it"), ("later", "all of it")),
        ] {
            assert_eq!(calls(None, tool, &input), [tool_call(None, shown.0, shown.1.to_owned())], "{input}");
        }
    }
}
