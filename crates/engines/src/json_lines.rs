//! Shared by the parsers of agents that print one JSON object per line.

use herma_core::tool::ToolAction;
use serde::Deserialize;
use serde_json::Value;

use crate::agent_event::AgentEvent;
use crate::subject::subject;

#[derive(Deserialize)]
struct Typed {
    #[serde(rename = "type")]
    kind: String,
}

/// The line as text and its `type`; `None` if it is no object with one. Invalid UTF-8 does not hide it.
pub(crate) fn typed(line: &[u8]) -> Option<(String, String)> {
    let text = String::from_utf8_lossy(line.trim_ascii()).into_owned();
    // An array would deserialize too, by position.
    let typed: Typed = text.starts_with('{').then(|| serde_json::from_str(&text).ok())??;
    Some((typed.kind, text))
}

/// A line of a known type with the wrong format.
pub(crate) fn malformed(error: &serde_json::Error) -> AgentEvent {
    AgentEvent::Malformed(error.to_string().chars().take(200).collect())
}

/// A tool call and its subject.
pub(crate) fn tool(name: &str, input: &Value) -> AgentEvent {
    let is_shell = name.eq_ignore_ascii_case("bash");
    AgentEvent::Tool {
        name: if is_shell { "shell".to_owned() } else { name.to_owned() },
        command: subject(ToolAction::of_tool(name), input),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_object_has_a_type() {
        assert_eq!(typed(b" {\"type\":\"user\"}\r\n"), Some(("user".into(), "{\"type\":\"user\"}".into())));
        for line in ["[\"user\"]", "\"user\"", "{\"type\":[\"user\"]}", "{}", "", "x{\"type\":\"user\"}"] {
            assert_eq!(typed(line.as_bytes()), None, "{line}");
        }
    }
}
