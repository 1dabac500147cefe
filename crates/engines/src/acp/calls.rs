//! The tool calls of a session. An agent may name a call first and say later what it is about; it is told when that is
//! known, and again where it changes.

use std::collections::VecDeque;

use herma_core::Digest;
use herma_core::tool::{LONGEST_SUBJECT, ToolAction};
use serde_json::Value;

use super::wire::Call;
use crate::engine::Said;
use crate::subject::{is_command, stated};

/// How many calls are remembered; of more the oldest is forgotten, and told again if it is heard of again.
const MOST: usize = 256;

/// The tool of whatever runs a command.
const SHELL: &str = "shell";

/// What is remembered of a call. It is the agent's, and can be as long as a line: a digest of it, or no more than is judged.
#[derive(Debug)]
struct Known {
    id: Digest,
    name: Option<String>,
    kind: Option<String>,
    /// Whether its input, or what it shows, is a command.
    is_command: bool,
    /// What it is about, by its input.
    about: Option<String>,
    /// The same by what is shown to people, while its input does not say.
    shown: Option<String>,
    title: String,
    told: Option<Digest>,
}

/// The calls of one session.
#[derive(Debug, Default)]
pub(super) struct Calls {
    known: VecDeque<Known>,
}

impl Calls {
    /// Hears of a call, and says what is to be told of it.
    pub(super) fn hear(&mut self, call: Call) -> Option<Said> {
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
        Some(Said::Tool { name: known.name(), command })
    }

    /// The tool and the command of a call that herma is asked about. That it was asked is told by who answers.
    pub(super) fn asked(&mut self, call: Call) -> (String, String) {
        let known = self.know(call);
        let command = known.about().unwrap_or(&known.title).to_owned();
        known.told = Some(Digest::of(command.as_bytes()));
        (known.name(), command)
    }

    /// The calls of which nothing was told: the turn is over, and nothing more will be said of them.
    pub(super) fn rest(&mut self) -> Vec<Said> {
        let untold = self.known.drain(..).filter(|known| known.told.is_none());
        untold.map(|known| Said::Tool { name: known.name(), command: known.title }).collect()
    }

    fn know(&mut self, call: Call) -> &mut Known {
        let id = Digest::of(call.tool_call_id.as_bytes());
        let at = self.known.iter().rposition(|known| known.id == id);
        let mut known = at.and_then(|at| self.known.remove(at)).unwrap_or_else(|| Known::new(id));
        known.learn(call);
        if self.known.len() == MOST {
            self.known.pop_front();
        }
        self.known.push_back(known);
        let last = self.known.len() - 1;
        &mut self.known[last]
    }
}

impl Known {
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

    fn learn(&mut self, call: Call) {
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

    /// What it is about, where more is known of that than its title.
    fn about(&self) -> Option<&str> {
        self.about.as_deref().or(self.shown.as_deref())
    }

    fn name(&self) -> String {
        if self.is_command { SHELL.to_owned() } else { self.said_name() }
    }

    /// The tool as the agent has it.
    fn said_name(&self) -> String {
        match (self.kind.as_deref(), &self.name) {
            (Some("execute"), _) => SHELL.to_owned(),
            (_, Some(name)) => name.clone(),
            (Some(kind), None) => kind.to_owned(),
            (None, None) => "tool".to_owned(),
        }
    }
}

/// The first of a text, still too long to be judged where the whole is.
fn cut(mut text: String) -> String {
    text.truncate(text.ceil_char_boundary(LONGEST_SUBJECT + 1));
    text.shrink_to_fit();
    text
}

/// The command line in what is shown: a text that begins with a prompt.
fn shown(content: &Value) -> Option<String> {
    let mut texts = content.as_array()?.iter().filter_map(|part| part["content"]["text"].as_str());
    texts.find_map(|text| text.strip_prefix("$ ")).map(ToOwned::to_owned)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn call(id: &str, more: &Value) -> Call {
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
            let found = Calls::default().asked(call("c", &asked));
            assert_eq!(found, (tool.to_owned(), command.to_owned()), "{asked}");
        }
    }

    #[test]
    fn what_was_put_in_stays_what_a_call_is_about() {
        let mut calls = Calls::default();
        let told = calls.hear(call("c", &json!({ "kind": "execute", "rawInput": { "cmd": "git push" } })));
        let (name, command) = ("shell".to_owned(), "git push".to_owned());
        assert_eq!(told, Some(Said::Tool { name: name.clone(), command: command.clone() }));
        let later = json!({ "title": "ls", "content": shows("$ ls"), "status": "completed" });
        assert_eq!(calls.hear(call("c", &later)), None);
        assert_eq!(calls.asked(call("c", &later)), (name, command));
    }

    #[test]
    fn of_what_is_too_long_to_be_judged_no_more_is_held_and_it_stays_too_long() {
        // Of several bytes, so that a cut may fall into one.
        let long = "\u{1f642}".repeat(LONGEST_SUBJECT);
        let mut calls = Calls::default();
        for at in 0..8 {
            let input = json!({ "kind": "execute", "title": long, "rawInput": { "command": long } });
            let (_, command) = calls.asked(call(&format!("{at}{long}"), &input));
            assert!(command.len() > LONGEST_SUBJECT && command.len() < LONGEST_SUBJECT + 8, "{at}");
        }
        assert!(format!("{calls:?}").len() < 8 * 3 * LONGEST_SUBJECT);
    }
}
