//! The tool calls of a session. An agent may announce a call first and send its input later; the call is reported
//! when its subject is known, and again when that changes.

use std::collections::VecDeque;

use herma_core::Digest;
use herma_core::tool::{MAX_SUBJECT_BYTES, ToolAction};
use serde_json::Value;

use super::wire::AcpToolCall;
use crate::agent_event::AgentEvent;
use crate::subject::{is_command, stated};

/// The number of remembered calls; the oldest is dropped, and reported again if it recurs.
const MAX_CALLS: usize = 256;

/// The tool name of every call that runs a command.
const SHELL: &str = "shell";

/// A remembered call. The agent controls its size: it is kept as a digest, or as the part that is judged.
#[derive(Debug)]
struct AcpKnownCall {
    id: Digest,
    name: Option<String>,
    kind: Option<String>,
    /// Whether its input, or its displayed content, is a command.
    is_command: bool,
    /// Its subject, from its input.
    about: Option<String>,
    /// Its subject from the displayed content, while the input does not state it.
    shown: Option<String>,
    title: String,
    told: Option<Digest>,
}

/// The calls of one session.
#[derive(Debug, Default)]
pub(super) struct AcpCallLog {
    known: VecDeque<AcpKnownCall>,
}

impl AcpCallLog {
    /// Records a call, and returns the event to report.
    pub(super) fn hear(&mut self, call: AcpToolCall) -> Option<AgentEvent> {
        let begun = !matches!(call.status.as_deref(), None | Some("pending"));
        let known = self.know(call);
        let command = match known.about() {
            Some(about) => about.to_owned(),
            None if begun && known.told.is_none() => known.title.clone(),
            None => return None,
        };
        let digest = Some(Digest::of(command.as_bytes()));
        if known.told == digest {
            return None;
        }
        known.told = digest;
        Some(AgentEvent::Tool { name: known.name(), command })
    }

    /// The tool and the command of a permission request. The caller reports the request.
    pub(super) fn asked(&mut self, call: AcpToolCall) -> (String, String) {
        let known = self.know(call);
        let command = known.about().unwrap_or(&known.title).to_owned();
        known.told = Some(Digest::of(command.as_bytes()));
        (known.name(), command)
    }

    /// The calls that were not reported before the end of the turn.
    pub(super) fn rest(&mut self) -> Vec<AgentEvent> {
        let untold = self.known.drain(..).filter(|known| known.told.is_none());
        untold.map(|known| AgentEvent::Tool { name: known.name(), command: known.title }).collect()
    }

    fn know(&mut self, call: AcpToolCall) -> &mut AcpKnownCall {
        let id = Digest::of(call.tool_call_id.as_bytes());
        let at = self.known.iter().rposition(|known| known.id == id);
        let mut known = at.and_then(|at| self.known.remove(at)).unwrap_or_else(|| AcpKnownCall::new(id));
        known.learn(call);
        if self.known.len() == MAX_CALLS {
            self.known.pop_front();
        }
        self.known.push_back(known);
        let last = self.known.len() - 1;
        &mut self.known[last]
    }
}

impl AcpKnownCall {
    fn new(id: Digest) -> Self {
        Self {
            id,
            name: None,
            kind: None,
            is_command: false,
            about: None,
            shown: None,
            title: String::new(),
            told: None,
        }
    }

    fn learn(&mut self, call: AcpToolCall) {
        self.name = call.name.map(cut).or(self.name.take());
        self.kind = call.kind.map(cut).or(self.kind.take());
        let said_to_be = ToolAction::of_tool(&self.said_name());
        let is_command = is_command(said_to_be, &call.raw_input);
        let action = if is_command { ToolAction::Shell } else { said_to_be };
        if let Some(about) = stated(action, &call.raw_input) {
            (self.about, self.is_command, self.shown) = (Some(cut(about)), is_command, None);
        } else if self.about.is_none()
            && let Some(shown) = shown(&call.content)
        {
            (self.shown, self.is_command) = (Some(cut(shown)), true);
        }
        if let Some(title) = call.title {
            self.title = cut(title);
        }
    }

    /// Its subject, if more than its title is known.
    fn about(&self) -> Option<&str> {
        self.about.as_deref().or(self.shown.as_deref())
    }

    fn name(&self) -> String {
        if self.is_command { SHELL.to_owned() } else { self.said_name() }
    }

    /// The agent's name of the tool.
    fn said_name(&self) -> String {
        match (self.kind.as_deref(), &self.name) {
            (Some("execute"), _) => SHELL.to_owned(),
            (_, Some(name)) => name.clone(),
            (Some(kind), None) => kind.to_owned(),
            (None, None) => "tool".to_owned(),
        }
    }
}

/// The start of a text, still too long to be judged if the whole is.
fn cut(mut text: String) -> String {
    text.truncate(text.ceil_char_boundary(MAX_SUBJECT_BYTES + 1));
    text.shrink_to_fit();
    text
}

/// The command line in displayed content: a text that begins with a prompt.
fn shown(content: &Value) -> Option<String> {
    let mut texts = content.as_array()?.iter().filter_map(|part| part["content"]["text"].as_str());
    texts.find_map(|text| text.strip_prefix("$ ")).map(ToOwned::to_owned)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn call(id: &str, more: &Value) -> AcpToolCall {
        let mut call = json!({ "toolCallId": id });
        call.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        serde_json::from_value(call).unwrap()
    }

    fn shows(text: &str) -> Value {
        json!([{ "type": "content", "content": { "type": "text", "text": text } }])
    }

    #[test]
    fn a_question_is_about_what_is_put_in_and_not_about_what_is_shown() {
        for (asked, tool, command) in [
            (json!({ "kind": "edit", "title": "README.md", "rawInput": { "path": ".env" } }), "edit", ".env"),
            (
                json!({ "kind": "edit", "title": "a", "rawInput": { "x": ".env", "y": 1 } }),
                "edit",
                r#"{"x":".env","y":1}"#,
            ),
            (
                json!({ "kind": "read", "title": "a", "rawInput": { "command": "git push" } }),
                "shell",
                "git push",
            ),
            (json!({ "kind": "read", "rawInput": { "command": "view", "path": "a" } }), "read", "a"),
            (
                json!({ "kind": "execute", "content": shows("$ ls"), "rawInput": { "script": "git push" } }),
                "shell",
                "git push",
            ),
            (
                json!({ "kind": "edit", "title": "a", "rawInput": {}, "content": shows("$ ls") }),
                "shell",
                "ls",
            ),
            (json!({ "kind": "execute", "title": "ls", "rawInput": { "cwd": "/" } }), "shell", "ls"),
            (json!({ "kind": "execute" }), "shell", ""),
        ] {
            let found = AcpCallLog::default().asked(call("c", &asked));
            assert_eq!(found, (tool.to_owned(), command.to_owned()), "{asked}");
        }
    }

    #[test]
    fn every_argument_stays_part_of_the_subject() {
        let mut calls = AcpCallLog::default();
        let told = calls.hear(call("c", &json!({ "kind": "execute", "rawInput": { "cmd": "git push" } })));
        let (name, command) = ("shell".to_owned(), "git push".to_owned());
        assert_eq!(told, Some(AgentEvent::Tool { name: name.clone(), command: command.clone() }));
        let later = json!({ "title": "ls", "content": shows("$ ls"), "status": "completed" });
        assert_eq!(calls.hear(call("c", &later)), None);
        assert_eq!(calls.asked(call("c", &later)), (name, command));
    }

    #[test]
    fn an_overlong_subject_is_cut_and_stays_overlong() {
        // A multi-byte character, so that a cut may fall into it.
        let long = "\u{1f642}".repeat(MAX_SUBJECT_BYTES);
        let mut calls = AcpCallLog::default();
        for at in 0..8 {
            let input = json!({ "kind": "execute", "title": long, "rawInput": { "command": long } });
            let (_, command) = calls.asked(call(&format!("{at}{long}"), &input));
            assert!(command.len() > MAX_SUBJECT_BYTES && command.len() < MAX_SUBJECT_BYTES + 8, "{at}");
        }
        assert!(format!("{calls:?}").len() < 8 * 3 * MAX_SUBJECT_BYTES);
    }
}
