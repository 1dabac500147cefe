//! Tools that we do not know by name, found by what their schema takes.

use serde_json::Value;

use super::Intent;
use super::arguments::property;
use super::fill::kind;
use super::table::Part;

const COMMANDS: &[&str] = &["command", "cmd", "script", "shell_command", "bash_command", "commandLine"];
const PATHS: &[&str] = &[
    "path",
    "file_path",
    "filePath",
    "filepath",
    "absolute_path",
    "filename",
    "file",
    "target_file",
    "dir_path",
    "directory",
];
const TEXTS: &[&str] = &["content", "contents", "text", "file_text", "body"];
const OLDS: &[&str] = &["old_string", "oldString", "old_text", "oldText", "old_str", "old", "search"];
const NEWS: &[&str] = &["new_string", "newString", "new_text", "newText", "new_str", "new", "replace"];
const DIFFS: &[&str] = &["patch", "input", "patchText", "patch_text", "diff"];

/// The arguments of a tool that can do this, by name and schema; none where it cannot.
pub(super) fn parts(intent: Intent, name: &str, schema: &Value) -> Option<Vec<(&'static str, Part)>> {
    let named = |words: &[&str]| {
        let lower = name.to_ascii_lowercase();
        words.iter().any(|word| lower.contains(word))
    };
    let text = |names: &'static [&'static str]| find(schema, names, is_free_text);
    match intent {
        Intent::Shell => {
            let as_text = required(schema, COMMANDS, is_free_text).map(|name| vec![(name, Part::Command)]);
            as_text.or_else(|| Some(vec![(required(schema, COMMANDS, is_list_of_texts)?, Part::Argv)]))
        }
        Intent::Write if named(&["write", "create", "save", "put_file"]) && text(OLDS).is_none() => {
            Some(vec![(text(PATHS)?, Part::Path), (text(TEXTS)?, Part::Text)])
        }
        Intent::Edit => {
            Some(vec![(text(PATHS)?, Part::Path), (text(OLDS)?, Part::Old), (text(NEWS)?, Part::New)])
        }
        Intent::Patch if named(&["patch", "diff"]) && text(OLDS).is_none() => {
            Some(vec![(text(DIFFS)?, Part::Diff)])
        }
        Intent::Read if named(&["read", "view", "open_file", "cat"]) && text(TEXTS).is_none() => {
            Some(vec![(text(PATHS)?, Part::Path)])
        }
        Intent::List if named(&["list", "ls"]) && text(TEXTS).is_none() => {
            Some(vec![(text(PATHS)?, Part::Path)])
        }
        _ => None,
    }
}

/// Whether a known tool takes these arguments. A schema without properties takes anything.
pub(super) fn takes(schema: &Value, parts: &[(&str, Part)]) -> bool {
    let Some(properties) = schema.get("properties").and_then(Value::as_object).filter(|map| !map.is_empty())
    else {
        return true;
    };
    parts.iter().all(|(name, part)| {
        properties.get(*name).is_some_and(|property| match part {
            Part::Argv | Part::Edits(..) => kind(property).is_none_or(|kind| kind == "array"),
            Part::Word(word) => property
                .get("enum")
                .and_then(Value::as_array)
                .is_none_or(|words| words.iter().any(|known| known == word)),
            _ => kind(property).is_none_or(|kind| kind == "string"),
        })
    })
}

fn find(schema: &Value, names: &'static [&'static str], fits: fn(&Value) -> bool) -> Option<&'static str> {
    names.iter().copied().find(|name| property(schema, name).is_some_and(fits))
}

fn required(
    schema: &Value,
    names: &'static [&'static str],
    fits: fn(&Value) -> bool,
) -> Option<&'static str> {
    let required = schema.get("required").and_then(Value::as_array)?;
    names
        .iter()
        .copied()
        .filter(|name| required.iter().any(|needed| needed == name))
        .find(|name| property(schema, name).is_some_and(fits))
}

/// A word from a list is no place for a command or a path.
fn is_free_text(property: &Value) -> bool {
    kind(property) == Some("string") && property.get("enum").is_none()
}

fn is_list_of_texts(property: &Value) -> bool {
    kind(property) == Some("array")
        && property.get("items").is_none_or(|items| kind(items).is_none_or(|kind| kind == "string"))
}
