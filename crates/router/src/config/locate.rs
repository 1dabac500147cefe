//! From an error of serde to a problem with its place and the path of its key. serde's messages quote values, which may be
//! secrets: only their fixed parts are used.

use std::borrow::Cow;

use toml::de::{DeTable, DeValue, Error};

use super::names::{as_key, instead, shown};
use super::problem::Problem;

/// Keys whose values are secrets or name their source. No key below them is shown.
const SECRET_KEYS: &[&str] = &["key", "keyring", "token", "url"];

/// A step from a value into it.
#[derive(Clone)]
enum Step<'a> {
    Key(&'a str),
    Item(usize),
}

/// A key or value of a document.
struct Found<'a, 't> {
    steps: Vec<Step<'a>>,
    value: &'a DeValue<'t>,
}

/// The problem of a text that is not TOML. The parser's `Display` would show the line.
pub(super) fn not_toml(text: &str, error: &Error) -> Problem {
    let problem = Problem::new(format!("this is not TOML: {}", error.message()), "");
    Problem { place: error.span().map(|span| place(text, span.start)), ..problem }
}

/// The problem of a document that serde refuses.
pub(super) fn refused(text: &str, error: &Error) -> Problem {
    let at = error.span().map(|span| span.start);
    let place = at.map(|at| place(text, at));
    let table = DeTable::parse(text).ok();
    let found = at.zip(table.as_ref()).and_then(|(at, table)| find(table.get_ref(), at, &[]));
    let (problem, expected) = match found {
        Some(found) => described(error.message(), &found),
        None => ("the document cannot be read".to_owned(), String::new()),
    };
    Problem { place, ..Problem::new(problem, expected) }
}

/// The line and the column of a byte, from 1.
pub(super) fn place(text: &str, at: usize) -> (u64, u64) {
    let before = &text.as_bytes()[..at.min(text.len())];
    let line_start = before.iter().rposition(|b| *b == b'\n').map_or(0, |newline| newline + 1);
    let lines = memchr::memchr_iter(b'\n', before).count();
    let column = String::from_utf8_lossy(&before[line_start..]).chars().count();
    (lines as u64 + 1, column as u64 + 1)
}

/// The place of a key, by the path of its table.
pub(super) fn key_place(text: &str, path: &[&str], key: &str) -> Option<(u64, u64)> {
    let document = DeTable::parse(text).ok()?;
    let mut table = document.get_ref();
    for step in path {
        table = table.get(*step)?.get_ref().as_table()?;
    }
    table.get_key_value(key).map(|(key, _)| place(text, key.span().start))
}

/// The innermost value, or else the key, that starts at this byte. The tables of a header start where it does.
fn find<'a, 't>(table: &'a DeTable<'t>, at: usize, steps: &[Step<'a>]) -> Option<Found<'a, 't>> {
    let below = |step| [steps, &[step]].concat();
    table.iter().find_map(|(key, value)| {
        let name: &'a Cow<'t, str> = key.get_ref();
        let steps = below(Step::Key(name));
        let starts = value.span().start == at || key.span().start == at;
        inside(value.get_ref(), at, &steps)
            .or_else(|| starts.then(|| Found { steps, value: value.get_ref() }))
    })
}

fn inside<'a, 't>(value: &'a DeValue<'t>, at: usize, steps: &[Step<'a>]) -> Option<Found<'a, 't>> {
    match value {
        DeValue::Table(table) => find(table, at, steps),
        DeValue::Array(list) => list.iter().enumerate().find_map(|(item, value)| {
            let steps = [steps, &[Step::Item(item)]].concat();
            let starts = value.span().start == at;
            inside(value.get_ref(), at, &steps)
                .or_else(|| starts.then(|| Found { steps, value: value.get_ref() }))
        }),
        _ => None,
    }
}

/// The problem and what is expected, from the fixed parts of a message.
fn described(message: &str, found: &Found<'_, '_>) -> (String, String) {
    // The list of `[[x]]` starts where its first table does.
    let is_list = message.starts_with("invalid type: sequence");
    let steps = match &*found.steps {
        [list @ .., Step::Item(_)] if is_list => list,
        steps => steps,
    };
    let path = path(steps);
    // The expected type comes last in the message, and never quotes the value.
    let expected = message.rsplit_once(", expected ").map(|(_, expected)| expected).unwrap_or_default();
    let is_datetime = matches!(found.value, DeValue::Datetime(_));
    if message.starts_with("unknown field `") && !is_datetime {
        return unknown_key(&found.steps, expected);
    }
    if let Some(key) = message.strip_prefix("missing field `").and_then(|rest| rest.strip_suffix('`')) {
        return (format!("`{path}.{key}` is missing"), format!("write {}", to_write(key)));
    }
    if message.starts_with("invalid type: ") || message.starts_with("invalid value: ") || is_datetime {
        let is_secret = matches!(found.steps.last(), Some(Step::Key("key" | "token")));
        if is_secret && matches!(found.value, DeValue::String(_)) {
            let problem =
                format!("`{path}` is written into the file, where everybody who reads the file has it");
            return (problem, format!("{}; and revoke it if others could read it", super::sources::EXPECTED));
        }
        let expected = match expected {
            "a sequence" => "a list",
            "a map" => "a table with a name for each entry",
            "a boolean" => "`true` or `false`",
            expected => expected,
        };
        let kind = if is_list { "a list" } else { kind(found.value) };
        return (format!("`{path}` is {kind}"), format!("expected {expected}"));
    }
    if message.ends_with("number overflowed") {
        return (format!("`{path}` is too large"), "expected a smaller number".to_owned());
    }
    (format!("`{path}` {message}"), String::new())
}

fn unknown_key(steps: &[Step<'_>], expected: &str) -> (String, String) {
    let (Some(Step::Key(key)), table) = (steps.last(), &steps[..steps.len().saturating_sub(1)]) else {
        return ("unknown key".to_owned(), String::new());
    };
    let known: Vec<&str> = expected.split('`').skip(1).step_by(2).collect();
    let below = if table.is_empty() { String::new() } else { format!(" in `{}`", path(table)) };
    let is_secret = table.iter().any(|step| matches!(step, Step::Key(key) if SECRET_KEYS.contains(key)));
    if is_secret {
        return (format!("unknown key{below}"), format!("expected one of: {}", known.join(", ")));
    }
    (format!("unknown key {}{below}", shown(key)), instead(key, &known))
}

/// The suggestion for a missing key.
fn to_write(key: &str) -> &'static str {
    match key {
        "address" => "`address = \"127.0.0.1:4000\"` or `address = \"unix:router.sock\"`",
        "chain" => "`chain = [\"upstream/model\"]`",
        "input" | "output" => "the price of a million tokens in US dollars, like `\"1.25\"`",
        "models" => "`models = [\"NAME\"]`, with names of `[models]`",
        "provider" => "`provider` with one of: openai, anthropic, compatible, scripted",
        "service" | "user" => "its label in the keyring",
        "token" => "its source: `token = { env = \"NAME\" }`",
        _ => "a value for it",
    }
}

/// The path as people write it: `models.m.chain[1]`.
fn path(steps: &[Step<'_>]) -> String {
    let mut path = String::new();
    for step in steps {
        match step {
            Step::Key(key) if path.is_empty() => path = as_key(key),
            Step::Key(key) => path.extend([".", &as_key(key)]),
            Step::Item(item) => path.extend(["[", &item.to_string(), "]"]),
        }
    }
    path
}

fn kind(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a text",
        DeValue::Integer(_) => "a whole number",
        DeValue::Float(_) => "a decimal number",
        DeValue::Boolean(_) => "a yes or no",
        DeValue::Datetime(_) => "a date or a time",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table of keys",
    }
}
