//! The subject of a tool call, as policy sees it.
//!
//! The arguments come from the model, and a tool ignores those that it does not know: so every argument that may be
//! the subject is included, and none hides another.

use std::collections::HashSet;

use herma_core::tool::ToolAction;
use serde_json::Value;

/// The separator between scripts of one call: no command contains it, so that no quote spans it.
const BETWEEN_SCRIPTS: char = '\0';

/// The arguments that are a command, in this order.
const COMMANDS: [&str; 2] = ["command", "cmd"];

/// The arguments of a command that is only a program name.
const ARGUMENTS: &str = "args";

/// Arguments that no shell runs: descriptions and working directories.
const NEVER_RUN: [&str; 4] = ["description", "justification", "cwd", "workdir"];

/// The arguments that may be a patch.
const PATCHES: [&str; 6] = ["command", "patch", "input", "patch_text", "patchText", "diff"];

/// The markers of a patch before a file name, between `***` and a colon.
const BEFORE_A_NAME: [&str; 5] = ["add file", "update file", "delete file", "move file", "move to"];

/// The subject of a call with these arguments: scripts, files, or all arguments.
pub(crate) fn subject(action: ToolAction, input: &Value) -> String {
    stated(action, input).unwrap_or_else(|| input.to_string())
}

/// The same; `None` if the arguments do not state it.
pub(crate) fn stated(action: ToolAction, input: &Value) -> Option<String> {
    if is_empty(input) {
        return None;
    }
    match action {
        ToolAction::Write | ToolAction::Read => {
            Some(joined(files(input), '\n').unwrap_or_else(|| input.to_string()))
        }
        ToolAction::Shell => joined(scripts(input), BETWEEN_SCRIPTS),
        // An unknown tool that takes a command runs it.
        ToolAction::Other if command(input).is_some() => joined(scripts(input), BETWEEN_SCRIPTS),
        _ => Some(only_text(input).unwrap_or_else(|| input.to_string())),
    }
}

/// Whether a call runs a command, whatever its tool is: it has one, and no file.
pub(crate) fn is_command(action: ToolAction, input: &Value) -> bool {
    let Value::Object(arguments) = input else { return false };
    let is_patch = action == ToolAction::Write && !patched(&input["command"]).is_empty();
    command(input).is_some() && !is_patch && !arguments.keys().any(|key| is_path_key(key))
}

fn is_empty(input: &Value) -> bool {
    match input {
        Value::Null => true,
        Value::String(text) => text.trim().is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(arguments) => arguments.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Each part once, in order.
fn joined(parts: Vec<String>, between: char) -> Option<String> {
    let mut seen = HashSet::new();
    // Shells ignore NUL, and here it separates parts.
    let parts: Vec<String> = parts.into_iter().map(|part| part.replace('\0', "")).collect();
    let once = parts.iter().map(String::as_str).filter(|part| !part.trim().is_empty() && seen.insert(*part));
    let once: Vec<&str> = once.collect();
    (!once.is_empty()).then(|| once.join(&between.to_string()))
}

/// The only argument, if it is a text.
fn only_text(input: &Value) -> Option<String> {
    let text = match input {
        Value::Object(arguments) if arguments.len() == 1 => arguments.values().next()?.as_str()?,
        other => other.as_str()?,
    };
    joined(vec![text.to_owned()], BETWEEN_SCRIPTS)
}

/// The commands of a call, and every other text that a tool might run.
fn scripts(input: &Value) -> Vec<String> {
    let Value::Object(arguments) = input else { return texts(input) };
    let mut scripts: Vec<String> =
        COMMANDS.iter().flat_map(|key| typed(&input[*key], &input[ARGUMENTS])).collect();
    let joins_arguments =
        COMMANDS.iter().any(|key| input[*key].is_string()) && words(&input[ARGUMENTS]).is_some();
    let is_told = |key: &str| {
        COMMANDS.contains(&key) && !typed(&input[key], &Value::Null).is_empty()
            || key == ARGUMENTS && joins_arguments
    };
    let rest = arguments.iter().filter(|(key, _)| !is_told(key) && !is_never_run(key));
    scripts.extend(rest.flat_map(|(_, value)| texts(value)));
    scripts
}

/// The command in the arguments, if any.
fn command(input: &Value) -> Option<String> {
    joined(COMMANDS.iter().flat_map(|key| typed(&input[*key], &Value::Null)).collect(), BETWEEN_SCRIPTS)
}

/// A command with its arguments, as one would type it.
fn typed(command: &Value, arguments: &Value) -> Vec<String> {
    let Some(program) = command.as_str() else { return words(command).into_iter().collect() };
    let Some(more) = words(arguments) else { return vec![program.to_owned()] };
    let with_arguments = format!("{program} {more}");
    // A whole command line has no separate arguments: a tool may ignore them, and then they make nothing harmless.
    if program.trim().contains(char::is_whitespace) {
        vec![program.to_owned(), with_arguments]
    } else {
        vec![with_arguments]
    }
}

/// A command that is a list of words, as one would type it.
fn words(list: &Value) -> Option<String> {
    let words: Vec<&str> = list.as_array()?.iter().map(Value::as_str).collect::<Option<_>>()?;
    match words[..] {
        [] => None,
        [only] => Some(only.to_owned()),
        _ => Some(words.into_iter().map(quoted).collect::<Vec<_>>().join(" ")),
    }
}

fn quoted(word: &str) -> String {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"-_./=:,@+".contains(&b);
    if !word.is_empty() && word.bytes().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// Every text in a value that might be run; a list also as the words of one command.
fn texts(value: &Value) -> Vec<String> {
    match value {
        Value::String(text) => vec![text.clone()],
        Value::Array(items) => words(value).into_iter().chain(items.iter().flat_map(texts)).collect(),
        Value::Object(fields) => {
            fields.iter().filter(|(key, _)| !is_never_run(key)).flat_map(|(_, value)| texts(value)).collect()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => Vec::new(),
    }
}

fn is_never_run(key: &str) -> bool {
    NEVER_RUN.contains(&key) || key.ends_with("_id") || key.ends_with("Id")
}

/// The files of a call: the values of path arguments, and the files that patches name.
fn files(input: &Value) -> Vec<String> {
    if input.is_string() { patched(input) } else { files_under(input) }
}

fn files_under(value: &Value) -> Vec<String> {
    match value {
        Value::Object(fields) => fields.iter().flat_map(|(key, value)| files_at(key, value)).collect(),
        Value::Array(items) => items.iter().flat_map(files_under).collect(),
        _ => Vec::new(),
    }
}

fn files_at(key: &str, value: &Value) -> Vec<String> {
    if is_path_key(key) {
        return paths(value);
    }
    let mut files = if PATCHES.contains(&key) { patched(value) } else { Vec::new() };
    files.extend(files_under(value));
    files
}

fn paths(value: &Value) -> Vec<String> {
    match value {
        Value::String(path) => vec![path.clone()],
        Value::Array(items) => items.iter().flat_map(paths).collect(),
        Value::Object(fields) => fields.values().flat_map(paths).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) => Vec::new(),
    }
}

fn is_path_key(key: &str) -> bool {
    let plain = key.replace(['_', '-'], "").to_ascii_lowercase();
    plain.ends_with("path")
        || plain.ends_with("paths")
        || ["file", "files", "filename"].contains(&plain.as_str())
}

/// The files that a patch names, anywhere on a line: tools that apply patches are lenient about blanks.
fn patched(value: &Value) -> Vec<String> {
    match value {
        Value::String(text) => text.lines().filter_map(named).flatten().map(ToOwned::to_owned).collect(),
        Value::Array(items) => items.iter().flat_map(patched).collect(),
        _ => Vec::new(),
    }
}

fn named(line: &str) -> Option<impl Iterator<Item = &str>> {
    let (what, names) = line.trim().strip_prefix("***")?.split_once(':')?;
    let what = what.split_whitespace().collect::<Vec<_>>().join(" ").to_ascii_lowercase();
    let moved = if what == "move file" { " -> " } else { "\n" };
    BEFORE_A_NAME.contains(&what.as_str()).then(|| names.split(moved).map(str::trim))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn about(action: ToolAction, input: &Value, expected: &str) {
        assert_eq!(subject(action, input), expected, "{action}: {input}");
    }

    #[test]
    fn an_ordinary_call_is_about_its_command_or_its_file() {
        about(
            ToolAction::Shell,
            &json!({ "command": "ls -l", "description": "git push", "timeout": 5 }),
            "ls -l",
        );
        about(ToolAction::Shell, &json!({ "command": "ls", "cwd": "/w", "session_id": "s" }), "ls");
        about(
            ToolAction::Shell,
            &json!({ "command": ["git", "push", "a b", "it's"] }),
            r"git push 'a b' 'it'\''s'",
        );
        about(ToolAction::Shell, &json!({ "command": "git", "args": ["push", "a b"] }), "git push 'a b'");
        about(ToolAction::Write, &json!({ "file_path": "a.rs", "content": "*** Add File: b" }), "a.rs");
        about(ToolAction::Write, &json!({ "filePath": "a", "oldString": "b", "newString": "c" }), "a");
        about(ToolAction::Read, &json!({ "pattern": "x", "path": "src" }), "src");
        about(ToolAction::Read, &json!({ "pattern": "*.rs", "path": "" }), r#"{"pattern":"*.rs","path":""}"#);
        about(ToolAction::Fetch, &json!({ "url": "https://a.b" }), "https://a.b");
        about(ToolAction::Fetch, &json!({ "url": "a", "as": "b" }), r#"{"url":"a","as":"b"}"#);
        about(ToolAction::Other, &json!({ "todos": [] }), r#"{"todos":[]}"#);
        about(ToolAction::Other, &json!({ "command": "ls", "description": "b" }), "ls");
    }

    #[test]
    fn no_argument_hides_a_command() {
        for (input, expected) in [
            // A patch for another tool is a script for this one.
            (
                json!({ "command": "*** Begin Patch\n*** Add File: a.txt\ngit push origin main" }),
                "*** Begin Patch\n*** Add File: a.txt\ngit push origin main",
            ),
            (json!({ "cmd": "git push", "yield_time_ms": 10 }), "git push"),
            (json!({ "session_id": 1, "chars": "git push\n" }), "git push\n"),
            (json!({ "action": "submit", "data": "git push" }), "submit\0git push"),
            (json!({ "command": "echo '", "then": ["git", "push"] }), "echo '\0git push\0git\0push"),
            (json!({ "note": "a", "command": "git push" }), "git push\0a"),
            (json!({ "command": { "line": "git push", "description": "b" } }), "git push"),
            (json!({ "command": ["git push"] }), "git push"),
            (json!({ "command": ["a", 1, "git push"] }), "a\0git push"),
            // Most tools ignore `args`, and then the merge is not aborted.
            (json!({ "command": "git merge x", "args": ["--abort"] }), "git merge x\0git merge x --abort"),
            (json!({ "command": "git pu\0sh" }), "git push"),
            (json!("git push"), "git push"),
        ] {
            about(ToolAction::Shell, &input, expected);
        }
        about(ToolAction::Shell, &json!({ "chars": "", "session_id": 1 }), r#"{"chars":"","session_id":1}"#);
    }

    #[test]
    fn no_argument_hides_a_file() {
        let patch = "*** Begin Patch\n  *** Update File: .env\n@@\n***Move to : b\n*** Move File: c -> d\n+*** Add File: no";
        for (input, expected) in [
            (json!({ "command": "README.md", "path": ".env" }), ".env"),
            (json!({ "path": "README.md", "file_path": ".env" }), "README.md\n.env"),
            (
                json!({ "path": "README.md", "edits": [{ "path": ".env" }, { "path": "README.md" }] }),
                "README.md\n.env",
            ),
            (json!({ "path": ["a", { "b": ".env" }] }), "a\n.env"),
            (json!({ "mode": "patch", "path": "README.md", "patch": patch }), "README.md\n.env\nb\nc\nd"),
            (json!({ "command": ["apply_patch", patch] }), ".env\nb\nc\nd"),
            (json!(patch), ".env\nb\nc\nd"),
            (json!({ "absolute-path": "a", "newPath": "b" }), "a\nb"),
            (json!({ "name": ".env" }), r#"{"name":".env"}"#),
        ] {
            about(ToolAction::Write, &input, expected);
        }
    }

    #[test]
    fn a_call_with_a_command_and_no_file_runs_it() {
        for (action, input, runs) in [
            (ToolAction::Read, json!({ "command": "cat a" }), true),
            (ToolAction::Read, json!({ "command": ["cat", "a"], "parsed": [{ "path": "a" }] }), true),
            (ToolAction::Read, json!({ "command": "*** Add File: a\ngit push" }), true),
            (ToolAction::Write, json!({ "command": "*** Add File: a" }), false),
            (ToolAction::Write, json!({ "command": "create", "path": "a" }), false),
            (ToolAction::Other, json!({ "command": "" }), false),
            (ToolAction::Other, json!({}), false),
        ] {
            assert_eq!(is_command(action, &input), runs, "{action}: {input}");
        }
    }

    #[test]
    fn arguments_without_a_subject_state_none() {
        for input in [json!(null), json!({}), json!([]), json!(" ")] {
            for action in ToolAction::ALL {
                assert_eq!(stated(action, &input), None, "{action}: {input}");
            }
        }
        assert_eq!(stated(ToolAction::Shell, &json!({ "cwd": "/workspace" })), None);
    }
}
