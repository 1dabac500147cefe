//! The tool calls of a session. An agent may name a call first and say later what it is about; it is told when that is
//! known, and again where it changes.

use std::collections::VecDeque;

use serde_json::Value;

use super::wire::Call;
use crate::engine::Said;
use crate::json_lines::about;

/// How many calls are remembered; of more the oldest is forgotten, and told again if it is heard of again.
const MOST: usize = 256;

/// What is remembered of a call.
#[derive(Debug, Default)]
struct Known {
    id: String,
    name: Option<String>,
    kind: Option<String>,
    title: String,
    /// What it is about, as far as the agent has said.
    about: Option<String>,
    told: Option<String>,
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
        let command = match &known.about {
            Some(about) => about.clone(),
            None if begun && known.told.is_none() => known.title.clone(),
            None => return None,
        };
        if known.told.as_ref() == Some(&command) {
            return None;
        }
        known.told = Some(command.clone());
        Some(Said::Tool { name: known.name(), command })
    }

    /// The tool and the command of a call that herma is asked about. That it was asked is told by who answers.
    pub(super) fn asked(&mut self, call: Call) -> (String, String) {
        let known = self.know(call);
        let command = known.about.clone().unwrap_or_else(|| known.title.clone());
        known.told = Some(command.clone());
        (known.name(), command)
    }

    /// The calls of which nothing was told: the turn is over, and nothing more will be said of them.
    pub(super) fn rest(&mut self) -> Vec<Said> {
        let untold = self.known.drain(..).filter(|known| known.told.is_none());
        untold.map(|known| Said::Tool { name: known.name(), command: known.title }).collect()
    }

    fn know(&mut self, call: Call) -> &mut Known {
        let at = self.known.iter().rposition(|known| known.id == call.tool_call_id);
        let mut known = match at.and_then(|at| self.known.remove(at)) {
            Some(known) => known,
            None => Known { id: call.tool_call_id.clone(), ..Known::default() },
        };
        known.about = subject(&call).or(known.about);
        known.name = call.name.or(known.name);
        known.kind = call.kind.or(known.kind);
        known.title = call.title.unwrap_or(known.title);
        if self.known.len() == MOST {
            self.known.pop_front();
        }
        self.known.push_back(known);
        let last = self.known.len() - 1;
        &mut self.known[last]
    }
}

impl Known {
    fn name(&self) -> String {
        match (self.kind.as_deref(), &self.name) {
            (Some("execute"), _) => "shell".to_owned(),
            (_, Some(name)) => name.clone(),
            (Some(kind), None) => kind.to_owned(),
            (None, None) => "tool".to_owned(),
        }
    }
}

/// What a call is about: the command or the path in its input, or the command line that it shows to people.
fn subject(call: &Call) -> Option<String> {
    let input = &call.raw_input;
    if let Some(words) = words(&input["command"]) {
        return Some(words);
    }
    if let (Some(program), Some(more)) = (input["command"].as_str(), words(&input["args"])) {
        return Some(format!("{program} {more}"));
    }
    about(input).map(ToOwned::to_owned).or_else(|| shown(&call.content))
}

/// A command that is a list of words, as one would type it.
fn words(list: &Value) -> Option<String> {
    let words: Option<Vec<String>> = list.as_array()?.iter().map(|word| word.as_str().map(quoted)).collect();
    words.filter(|words| !words.is_empty()).map(|words| words.join(" "))
}

fn quoted(word: &str) -> String {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"-_./=:,@+".contains(&b);
    if !word.is_empty() && word.bytes().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// The command line in what is shown: a text that begins with a prompt.
fn shown(content: &Value) -> Option<String> {
    let mut texts = content.as_array()?.iter().filter_map(|part| part["content"]["text"].as_str());
    texts.find_map(|text| text.strip_prefix("$ ")).map(ToOwned::to_owned)
}
