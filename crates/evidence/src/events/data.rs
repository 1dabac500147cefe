//! Bounds the data of an event: no secret, and no more than a reader can use.

use herma_core::event::Source;
use serde_json::{Map, Value};

use crate::redact::Redactor;

/// How deep data may be nested; parsers of JSON refuse what is much deeper.
const DEEPEST: usize = 32;
/// How long one text of an agent may be.
const MAX_AGENT_TEXT_BYTES: usize = 4 << 10;
/// How long the data of one event may be: an agent's, and herma's own.
const MAX_AGENT_DATA_BYTES: usize = 16 << 10;
const MAX_DATA_BYTES: usize = 128 << 10;

/// The data as it may be written.
pub(super) fn prepare(data: Map<String, Value>, source: Source, redactor: &Redactor) -> Map<String, Value> {
    let (longest_text, longest) = match source {
        Source::Agent => (MAX_AGENT_TEXT_BYTES, MAX_AGENT_DATA_BYTES),
        Source::Harness => (MAX_DATA_BYTES, MAX_DATA_BYTES),
    };
    let clean = Cleaner { redactor, longest_text };
    let data = clean.map(data, 0);
    let size = serde_json::to_vec(&data).map_or(usize::MAX, |bytes| bytes.len());
    if size <= longest {
        return data;
    }
    Map::from_iter([("left_out_bytes".to_owned(), Value::from(size))])
}

/// The replacement for data that shows a secret only as a whole.
pub(super) fn withheld() -> Map<String, Value> {
    Map::from_iter([("withheld".to_owned(), Value::from("it held a secret"))])
}

struct Cleaner<'a> {
    redactor: &'a Redactor,
    longest_text: usize,
}

impl Cleaner<'_> {
    fn map(&self, map: Map<String, Value>, depth: usize) -> Map<String, Value> {
        map.into_iter().map(|(key, value)| (self.text(&key), self.value(value, depth + 1))).collect()
    }

    fn value(&self, value: Value, depth: usize) -> Value {
        match value {
            Value::Array(_) | Value::Object(_) if depth > DEEPEST => {
                Value::from("[left out: nested too deep]")
            }
            Value::String(text) => Value::String(self.text(&text)),
            Value::Array(items) => items.into_iter().map(|item| self.value(item, depth + 1)).collect(),
            Value::Object(map) => Value::Object(self.map(map, depth)),
            plain => plain,
        }
    }

    fn text(&self, text: &str) -> String {
        let mut clean = self.redactor.redact(text);
        if clean.len() > self.longest_text {
            let rest = clean.split_off(clean.floor_char_boundary(self.longest_text));
            return format!("{clean}[left out: {} bytes]", rest.len());
        }
        clean
    }
}
