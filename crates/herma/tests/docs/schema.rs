//! Reads what a published schema says about its keys.

use herma_cli::schemas::SCHEMAS;
use serde_json::Value;

/// One key of a schema.
pub(crate) struct Key {
    /// Its name.
    pub(crate) name: String,
    /// Its type.
    pub(crate) kind: String,
    /// Its default; none if it is required.
    pub(crate) default: Option<String>,
    /// Its meaning.
    pub(crate) what: String,
}

/// One value of a list of words, with its meaning.
pub(crate) struct Word {
    /// As it is written.
    pub(crate) word: String,
    /// Its meaning.
    pub(crate) what: String,
}

/// A schema, parsed.
pub(crate) struct Schema(Value);

impl Schema {
    /// A published one by its name.
    pub(crate) fn named(name: &str) -> Self {
        let published = SCHEMAS.iter().find(|schema| schema.name == name).unwrap();
        Self::of(&published.schema())
    }

    /// One that is read, and not published.
    pub(crate) fn of(schema: &schemars::Schema) -> Self {
        let mut value = serde_json::to_value(schema).unwrap();
        value.sort_all_objects();
        Self(value)
    }

    /// The keys at the top.
    pub(crate) fn keys(&self) -> Vec<Key> {
        Self::keys_of(&self.0)
    }

    /// The keys of one of its definitions.
    pub(crate) fn keys_in(&self, definition: &str) -> Vec<Key> {
        Self::keys_of(&self.0["$defs"][definition])
    }

    /// The words that one of its definitions lists.
    pub(crate) fn words(&self, definition: &str) -> Vec<Word> {
        Self::words_of(&self.0["$defs"][definition])
    }

    /// The words that it lists itself.
    pub(crate) fn words_at_the_top(&self) -> Vec<Word> {
        Self::words_of(&self.0)
    }

    fn words_of(definition: &Value) -> Vec<Word> {
        let choices = definition["oneOf"].as_array().unwrap();
        let word = |choice: &Value| Word {
            word: choice["const"].as_str().unwrap().to_owned(),
            what: choice["description"].as_str().unwrap_or_default().to_owned(),
        };
        choices.iter().map(word).collect()
    }

    fn keys_of(object: &Value) -> Vec<Key> {
        let required = object["required"].as_array().cloned().unwrap_or_default();
        let properties = object["properties"].as_object().unwrap();
        let key = |(name, value): (&String, &Value)| Key {
            name: name.clone(),
            kind: kind(value),
            default: value
                .get("default")
                .map(written)
                .or_else(|| (!required.contains(&Value::from(name.as_str()))).then(|| "none".to_owned())),
            what: value["description"].as_str().unwrap_or_default().to_owned(),
        };
        properties.iter().map(key).collect()
    }
}

/// The type of a value, as text.
fn kind(value: &Value) -> String {
    if let Some(name) = value["$ref"].as_str().and_then(|path| path.rsplit('/').next()) {
        return readable(name);
    }
    if let Some(choices) = value["anyOf"].as_array() {
        let real: Vec<String> = choices.iter().filter(|c| c["type"] != "null").map(kind).collect();
        return format!("{} or null", real.join(" or "));
    }
    match &value["type"] {
        Value::Array(kinds) => {
            kinds.iter().filter_map(Value::as_str).map(word_for).collect::<Vec<_>>().join(" or ")
        }
        Value::String(form) if form == "array" => format!("list of {}", kind(&value["items"])),
        Value::String(form) if form == "object" && value["additionalProperties"].is_object() => {
            format!("map to {}", kind(&value["additionalProperties"]))
        }
        Value::String(_) if value["format"] == "date-time" => "time".to_owned(),
        Value::String(form) => word_for(form).to_owned(),
        _ => panic!("{value} has no kind that can be said in words"),
    }
}

fn word_for(kind: &str) -> &str {
    match kind {
        "string" => "text",
        "boolean" => "true or false",
        "integer" => "whole number",
        other => other,
    }
}

/// The name of a schema type for the reader of a page; `ChangedFile` is a changed file.
fn readable(name: &str) -> String {
    let word = match name {
        "ContractId" | "FixtureName" | "EngineName" | "RunId" => "name",
        "Span" => "length of time",
        "Bytes" => "amount of memory",
        "Tokens" => "number of tokens",
        "Usd" => "US dollars",
        "Patterns" => "list of patterns, at least one",
        "Stage" => "1 to 6",
        "RepoPath" => "path",
        "DestinationKind" => "destination",
        "ModelChoice" => "model",
        "NeverActivated" => "false",
        "ReportSchema" => "version",
        _ => "",
    };
    if !word.is_empty() {
        return word.to_owned();
    }
    let mut words = String::new();
    for c in name.chars() {
        if c.is_ascii_uppercase() && !words.is_empty() {
            words.push(' ');
        }
        words.push(c.to_ascii_lowercase());
    }
    words
}

/// A default as a person would write it.
fn written(default: &Value) -> String {
    match default {
        Value::Null => "none".to_owned(),
        Value::Array(items) if items.is_empty() => "`[]`".to_owned(),
        Value::String(text) => format!("`{text}`"),
        Value::Object(keys) => {
            let said = keys.iter().filter(|(_, value)| !value.is_null());
            let said: Vec<String> = said.map(|(key, value)| format!("{key}: {}", plain(value))).collect();
            format!("`{{ {} }}`", said.join(", "))
        }
        other => format!("`{other}`"),
    }
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
