//! Plausible values for arguments that a schema requires and a script does not give. The same schema gives the same
//! value.

use serde_json::{Map, Value, json};

/// The depth to which a schema is followed. Deeper values are `null`.
const DEPTH: usize = 8;

/// About how many bytes are filled in for one argument. A schema is the client's, and can ask for anything.
const BYTES: usize = 16 << 10;

/// A value for the argument `name`, whose schema is `property`, in the schema `root`.
pub(super) fn fill(name: &str, property: Option<&Value>, root: &Value) -> Value {
    let mut filler = Filler { root, left: BYTES };
    property.map_or_else(|| text_for(name), |property| filler.value(name, property, DEPTH))
}

struct Filler<'a> {
    root: &'a Value,
    left: usize,
}

impl Filler<'_> {
    fn value(&mut self, name: &str, schema: &Value, depth: usize) -> Value {
        self.left = self.left.saturating_sub(name.len() + 16);
        if depth == 0 || self.left == 0 {
            return Value::Null;
        }
        if let Some(given) = schema.get("const").or_else(|| schema.get("default")) {
            return self.copy(given);
        }
        if nullable(schema) {
            return Value::Null;
        }
        let first = |key: &str| schema.get(key).and_then(Value::as_array).and_then(|list| list.first());
        if let Some(given) = first("enum").or_else(|| first("examples")) {
            return self.copy(given);
        }
        if let Some(inner) = first("anyOf").or_else(|| first("oneOf")).or_else(|| first("allOf")) {
            return self.value(name, inner, depth - 1);
        }
        if let Some(inner) =
            schema.get("$ref").and_then(Value::as_str).and_then(|place| referred(place, self.root))
        {
            return self.value(name, inner, depth - 1);
        }
        let least = schema.get("minimum").filter(|least| least.is_number());
        match kind(schema) {
            Some("integer") => least.cloned().unwrap_or_else(|| json!(1)),
            Some("number") => least.cloned().unwrap_or_else(|| json!(1.0)),
            Some("boolean") => json!(false),
            Some("null") => Value::Null,
            Some("array") => self.list(name, schema, depth),
            Some("object") => self.object(schema, depth),
            _ => text_for(name),
        }
    }

    /// A value that the schema itself gives, unless it is too large.
    fn copy(&mut self, given: &Value) -> Value {
        let size = given.to_string().len();
        if size > self.left {
            return Value::Null;
        }
        self.left -= size;
        given.clone()
    }

    fn list(&mut self, name: &str, schema: &Value, depth: usize) -> Value {
        let least = schema.get("minItems").and_then(Value::as_u64).unwrap_or(0);
        let item = schema.get("items").unwrap_or(&Value::Null);
        let mut items = Vec::new();
        while (items.len() as u64) < least && self.left > 0 {
            items.push(self.value(name, item, depth - 1));
        }
        Value::Array(items)
    }

    fn object(&mut self, schema: &Value, depth: usize) -> Value {
        let required = schema.get("required").and_then(Value::as_array);
        let mut filled = Map::new();
        for name in required.into_iter().flatten().filter_map(Value::as_str) {
            if self.left == 0 {
                break;
            }
            let inner = schema.get("properties").and_then(|properties| properties.get(name));
            filled.insert(name.to_owned(), self.value(name, inner.unwrap_or(&Value::Null), depth - 1));
        }
        Value::Object(filled)
    }
}

/// Schemas that want every argument named let those be `null` that are not needed.
fn nullable(schema: &Value) -> bool {
    let is_null = |kind: &Value| kind == "null";
    let listed = |list: &Vec<Value>| list.iter().any(is_null);
    let one_of = |list: &Vec<Value>| list.iter().any(|inner| inner.get("type").is_some_and(is_null));
    schema.get("type").and_then(Value::as_array).is_some_and(listed)
        || schema.get("anyOf").and_then(Value::as_array).is_some_and(one_of)
        || schema.get("nullable") == Some(&Value::Bool(true))
}

/// The type, and the first one where there are several.
pub(super) fn kind(schema: &Value) -> Option<&str> {
    match schema.get("type")? {
        Value::String(kind) => Some(kind),
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).find(|kind| *kind != "null"),
        _ => None,
    }
}

/// The target of `#/$defs/X`.
fn referred<'a>(place: &str, root: &'a Value) -> Option<&'a Value> {
    root.pointer(place.strip_prefix('#')?)
}

fn text_for(name: &str) -> Value {
    let lower = name.to_ascii_lowercase();
    let holds = |words: &[&str]| words.iter().any(|word| lower.contains(word));
    if holds(&["description", "explanation", "reason", "justification", "summary", "title", "purpose"]) {
        json!("A step of the task")
    } else if holds(&["workdir", "cwd", "directory", "path"]) {
        json!(".")
    } else {
        json!("scripted")
    }
}
