//! What the readers of agents that print one JSON object a line have in common.

use herma_core::tool::ToolAction;
use serde::Deserialize;
use serde_json::Value;

use crate::engine::Said;
use crate::subject::subject;

#[derive(Deserialize)]
struct Typed {
    #[serde(rename = "type")]
    kind: String,
}

/// The line as text, and its `type`; none where it is no object that has one. Bytes that are no UTF-8 do not hide it.
pub(crate) fn typed(line: &[u8]) -> Option<(String, String)> {
    let text = String::from_utf8_lossy(line.trim_ascii()).into_owned();
    // An array would be read too, its items in the order of the fields.
    let typed: Typed = text.starts_with('{').then(|| serde_json::from_str(&text).ok())??;
    Some((typed.kind, text))
}

/// A line of a known type that has not the form of its type.
pub(crate) fn malformed(error: &serde_json::Error) -> Said {
    Said::Malformed(error.to_string().chars().take(200).collect())
}

/// A call of a tool, and what it is about.
pub(crate) fn tool(name: &str, input: &Value) -> Said {
    let is_shell = name.eq_ignore_ascii_case("bash");
    Said::Tool {
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
