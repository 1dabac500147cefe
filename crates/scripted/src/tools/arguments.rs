//! The arguments of a call: what the script gives, in order, and what else the schema requires.

use serde::ser::{Serialize, SerializeMap as _, Serializer};
use serde_json::{Value, json};

use super::fill::fill;
use super::table::Part;
use super::working_directory::absolute;
use crate::call::Call;

/// The most arguments that are filled in.
const MOST_FILLED: usize = 64;

/// Arguments in the order in which they are sent.
#[derive(Clone, Debug, Default)]
pub(super) struct Arguments(Vec<(String, Value)>);

impl Arguments {
    /// The values of `call` for `parts`, and plausible values for other properties that `schema` requires.
    pub(super) fn of(
        call: &Call,
        parts: &[(&str, Part)],
        schema: &Value,
        conversation: &str,
    ) -> Option<Self> {
        let mut arguments = Vec::with_capacity(parts.len());
        for (name, part) in parts {
            let mut value = value(*part, call)?;
            if let (Part::Path, Value::String(path)) = (part, &mut value)
                && wants_absolute(property(schema, name))
            {
                *path = absolute(path, conversation);
            }
            arguments.push(((*name).to_owned(), value));
        }
        let required = schema.get("required").and_then(Value::as_array);
        for name in required.into_iter().flatten().filter_map(Value::as_str).take(MOST_FILLED) {
            if !arguments.iter().any(|(given, _)| given == name) {
                arguments.push((name.to_owned(), fill(name, property(schema, name), schema)));
            }
        }
        Some(Self(arguments))
    }

    /// As JSON.
    pub(super) fn text(&self) -> String {
        // Keys are texts and values are JSON already, so that this cannot fail.
        serde_json::to_string(self).unwrap_or_default()
    }
}

impl Serialize for Arguments {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (name, value) in &self.0 {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

/// The schema of one argument.
pub(super) fn property<'a>(schema: &'a Value, name: &str) -> Option<&'a Value> {
    schema.get("properties")?.get(name)
}

fn wants_absolute(property: Option<&Value>) -> bool {
    let description = property.and_then(|property| property.get("description")).and_then(Value::as_str);
    description.is_some_and(|text| text.to_ascii_lowercase().contains("absolute"))
}

/// The value of one argument; none if the call has no such part.
fn value(part: Part, call: &Call) -> Option<Value> {
    Some(match (part, call) {
        (Part::Command, Call::Shell(command)) => json!(command),
        (Part::Argv, Call::Shell(command)) => json!(["bash", "-lc", command]),
        (Part::Path, Call::Write(file)) => json!(file.path),
        (Part::Path, Call::Edit(file)) => json!(file.path),
        (Part::Path, Call::Read(path) | Call::List(path)) => json!(path),
        (Part::Text, Call::Write(file)) => json!(file.text),
        (Part::Old, Call::Edit(file)) => json!(file.old),
        (Part::New, Call::Edit(file)) => json!(file.new),
        (Part::Edits(old, new), Call::Edit(file)) => {
            let mut edit = serde_json::Map::new();
            edit.insert(old.to_owned(), json!(file.old));
            edit.insert(new.to_owned(), json!(file.new));
            json!([edit])
        }
        (Part::Diff, Call::Patch(patch)) => json!(patch),
        (Part::Word(word), _) => json!(word),
        _ => return None,
    })
}
