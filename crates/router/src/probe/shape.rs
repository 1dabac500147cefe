//! The parts of an answer: text, reasoning, a refusal, tool calls. Read leniently, because servers differ; unknown parts are
//! ignored.

mod chat;
mod messages;
mod responses;

use serde_json::Value;

use herma_dialect::Dialect;

/// The parts of an answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Shape {
    /// Everything that is text to the client.
    text: String,
    /// Whether some of it is marked as reasoning.
    pub(super) reasons: bool,
    /// Whether it is marked as a refusal.
    pub(super) refuses: bool,
    pub(super) calls: Vec<Call>,
}

/// A tool call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Call {
    pub(super) name: String,
    /// None where they are not what the API has, or not JSON.
    pub(super) arguments: Option<Value>,
}

impl Shape {
    /// The shape of a whole answer.
    pub(super) fn of_whole(dialect: Dialect, body: &Value) -> Self {
        let mut shape = Self::default();
        match dialect {
            Dialect::Chat => chat::whole(&mut shape, body),
            Dialect::Responses => responses::whole(&mut shape, body),
            Dialect::Messages => messages::whole(&mut shape, body),
        }
        shape.sort_out_thoughts();
        shape
    }

    /// The shape of a stream, from its events.
    pub(super) fn of_events(dialect: Dialect, events: impl Iterator<Item = Value>) -> Self {
        let mut shape = Self::default();
        for event in events {
            match dialect {
                Dialect::Chat => chat::event(&mut shape, &event),
                Dialect::Responses => responses::event(&mut shape, &event),
                Dialect::Messages => messages::event(&mut shape, &event),
            }
        }
        shape.sort_out_thoughts();
        shape
    }

    /// Whether there is text for the client.
    pub(super) fn says_something(&self) -> bool {
        !self.text.trim().is_empty()
    }

    /// Servers that do not know a model's marks leave its reasoning in the text: `<think>` up to `</think>`. Some have
    /// put the first mark into the prompt, so that only the second one comes; without that one all of it is reasoning.
    fn sort_out_thoughts(&mut self) {
        const OPEN: &str = "<think>";
        const CLOSE: &str = "</think>";
        let thought = match self.text.rfind(CLOSE) {
            Some(at) => at + CLOSE.len(),
            None if self.text.trim_start().starts_with(OPEN) => self.text.len(),
            None => return,
        };
        self.text.drain(..thought);
        self.reasons = true;
    }
}

/// The elements of a list; none where there is no list.
fn list<'a>(value: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> {
    value.get(key).and_then(Value::as_array).into_iter().flatten()
}

/// The text of a key; empty where there is none.
fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// Arguments that come as a text of JSON.
fn parsed(arguments: Option<&Value>) -> Option<Value> {
    serde_json::from_str(arguments?.as_str()?).ok()
}
