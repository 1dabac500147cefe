//! What the readers of agents that print one JSON object a line have in common.

use serde::Deserialize;
use serde_json::Value;

use crate::engine::Said;

/// The arguments that say what a call is about, in the spellings of the agents.
const ABOUT: [&str; 5] = ["command", "file_path", "filePath", "path", "notebook_path"];

#[derive(Deserialize)]
struct Typed {
    #[serde(rename = "type")]
    kind: String,
}

/// The line as text, and its `type`; none where it is no object that has one. Bytes that are no UTF-8 do not hide it.
pub(crate) fn typed(line: &[u8]) -> Option<(String, String)> {
    let text = String::from_utf8_lossy(line.trim_ascii()).into_owned();
    let typed: Typed = serde_json::from_str(&text).ok()?;
    Some((typed.kind, text))
}

/// A line of a known type that has not the form of its type.
pub(crate) fn malformed(error: &serde_json::Error) -> Said {
    Said::Malformed(error.to_string().chars().take(200).collect())
}

/// What the arguments of a call are about, where one of them says so.
pub(crate) fn about(input: &Value) -> Option<&str> {
    ABOUT.into_iter().find_map(|key| input.get(key).and_then(Value::as_str))
}

/// A call of a tool: a shell by its command, a call on a file by its path, any other by all of its arguments.
pub(crate) fn tool(name: &str, input: &Value) -> Said {
    let is_shell = name.eq_ignore_ascii_case("bash");
    Said::Tool {
        name: if is_shell { "shell".to_owned() } else { name.to_owned() },
        command: about(input).map_or_else(|| input.to_string(), ToOwned::to_owned),
    }
}
