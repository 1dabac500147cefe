//! The fields of an admission, one after another, as they are written, checked and shown.

use std::fmt::Write as _;

/// One field of an admission file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// Its key.
    pub key: &'static str,
    /// The value.
    pub value: FieldValue,
}

/// The value of a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FieldValue {
    /// Nothing yet.
    Empty,
    /// A value that herma understands: a name of its own, a digest, a date, yes or no.
    Word(String),
    /// Text that a person wrote.
    Text(String),
    /// Several texts.
    List(Vec<String>),
}

impl Field {
    pub(super) fn word(key: &'static str, value: Option<impl ToString>) -> Self {
        Self { key, value: value.map_or(FieldValue::Empty, |value| FieldValue::Word(value.to_string())) }
    }

    pub(super) fn text(key: &'static str, value: Option<impl ToString>) -> Self {
        Self { key, value: value.map_or(FieldValue::Empty, |value| FieldValue::Text(value.to_string())) }
    }

    pub(super) fn list(key: &'static str, value: Option<Vec<String>>) -> Self {
        Self { key, value: value.map_or(FieldValue::Empty, FieldValue::List) }
    }

    /// The texts that a person wrote into it.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        let (one, many) = match &self.value {
            FieldValue::Text(text) => (Some(text.as_str()), [].as_slice()),
            FieldValue::List(texts) => (None, texts.as_slice()),
            FieldValue::Empty | FieldValue::Word(_) => (None, [].as_slice()),
        };
        one.into_iter().chain(many.iter().map(String::as_str))
    }
}

/// The file: every key, also those that are still empty, so that a person sees what to fill in.
pub(super) fn to_yaml(fields: &[Field]) -> String {
    let mut yaml = String::new();
    for Field { key, value } in fields {
        let _ = match value {
            FieldValue::Empty => writeln!(yaml, "{key}:"),
            FieldValue::Word(word) => writeln!(yaml, "{key}: {word}"),
            FieldValue::Text(text) => writeln!(yaml, "{key}: {}", quoted(text)),
            FieldValue::List(texts) if texts.is_empty() => writeln!(yaml, "{key}: []"),
            FieldValue::List(texts) => {
                let lines: Vec<String> = texts.iter().map(|text| format!("  - {}\n", quoted(text))).collect();
                write!(yaml, "{key}:\n{}", lines.concat())
            }
        };
    }
    yaml
}

/// In double quotes. JSON's quoting of a text without control characters is YAML's too.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
