//! Shell commands for clients without other tools, executed for real.

#![allow(clippy::disallowed_types, reason = "the commands are run by the shell that they are for")]

use std::fs;
use std::path::Path;
use std::process::Command;

use herma_dialect::Dialect;
use herma_scripted::{Call, Chosen, Input, choose};
use serde_json::{Value, json};

use super::kit::Request;

/// Runs what the call becomes for a client that only has a shell.
fn run(dir: &Path, call: Value) -> bool {
    let call: Call = serde_json::from_value(call).unwrap();
    let Chosen::Calls(calls) = choose(&call, &Request::new(Dialect::Chat).asked()) else {
        panic!("{call:?}")
    };
    let Input::Arguments(arguments) = &calls[0].input else { panic!("{calls:?}") };
    let arguments: Value = serde_json::from_str(arguments).unwrap();
    let command = arguments["command"].as_str().unwrap();
    Command::new("sh").args(["-c", command]).current_dir(dir).output().unwrap().status.success()
}

const ODD: &str = "it's \"odd\" $HOME `x` \\ %s %d\n\n\tHERMA_END\nHERMA_END\nü€😀";

#[test]
fn files_have_exactly_the_text() {
    let dir = tempfile::tempdir().unwrap();
    for (path, text) in [
        ("a.txt", "plain\n".to_owned()),
        ("deep/er/b.txt", ODD.to_owned()),
        ("with 'quotes' $x", format!("{ODD}\n")),
        ("empty", String::new()),
        ("newlines", "\n\n\n".to_owned()),
    ] {
        assert!(run(dir.path(), json!({ "write": { "path": path, "text": text } })), "{path}");
        assert_eq!(fs::read_to_string(dir.path().join(path)).unwrap(), text, "{path}");
    }
}

#[test]
fn an_edit_changes_the_first_place_and_nothing_else() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("it's.txt");
    let edit = |old: &str, new: &str| {
        run(dir.path(), json!({ "edit": { "path": "it's.txt", "old": old, "new": new } }))
    };
    let before = format!("one {ODD} two one\n\n");
    fs::write(&file, &before).unwrap();
    assert!(edit("one", "1 & \\1"));
    assert_eq!(fs::read_to_string(&file).unwrap(), before.replacen("one", "1 & \\1", 1));
    assert!(edit("$HOME `x`", "a\nb"));
    assert_eq!(
        fs::read_to_string(&file).unwrap(),
        before.replacen("one", "1 & \\1", 1).replacen("$HOME `x`", "a\nb", 1)
    );
    let now = fs::read_to_string(&file).unwrap();
    assert!(!edit("not there", "x"), "an edit of what is not there fails");
    assert_eq!(fs::read_to_string(&file).unwrap(), now);
}

#[test]
fn a_unified_diff_is_applied_by_git() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("x"), "x\n").unwrap();
    assert!(run(dir.path(), json!({ "patch": "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-x\n+y\n" })));
    assert_eq!(fs::read_to_string(dir.path().join("x")).unwrap(), "y\n");
}
