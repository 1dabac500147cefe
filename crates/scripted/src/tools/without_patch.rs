//! A patch for clients without a tool for it: as writes, edits and commands.

use super::by_patch::{FileOperation, operations};
use super::by_shell::quoted;
use crate::call::{Call, EditFile, WriteFile};

/// A patch as single calls.
pub(super) fn calls(patch: &str) -> Vec<Call> {
    operations(patch).iter().flat_map(of_file).collect()
}

fn of_file(operation: &FileOperation) -> Vec<Call> {
    let path = &operation.path;
    match &operation.diff {
        None => vec![Call::Shell(format!("rm -- {}", quoted(path)))],
        Some(diff) if operation.kind == "create_file" => {
            let added = diff.lines().filter_map(|line| line.strip_prefix('+'));
            let text = added.flat_map(|line| [line, "\n"]).collect();
            vec![Call::Write(WriteFile { path: path.clone(), text })]
        }
        Some(diff) => edits(path, diff),
    }
}

/// One edit for each part of a file's patch. Parts begin with `@@`; the rest are lines that stay, go or come.
fn edits(path: &str, diff: &str) -> Vec<Call> {
    let mut calls = Vec::new();
    let mut moved = None;
    for line in diff.lines() {
        if calls.is_empty() || line.starts_with("@@") {
            calls.push(EditFile { path: path.to_owned(), old: String::new(), new: String::new() });
        }
        let Some(edit) = calls.last_mut() else { continue };
        let (old, new) = match line.split_at_checked(1) {
            Some((" ", text)) => (Some(text), Some(text)),
            Some(("-", text)) => (Some(text), None),
            Some(("+", text)) => (None, Some(text)),
            _ => {
                moved = moved.or(line.strip_prefix("*** Move to: "));
                continue;
            }
        };
        for (side, text) in [(&mut edit.old, old), (&mut edit.new, new)] {
            if let Some(text) = text {
                side.push_str(text);
                side.push('\n');
            }
        }
    }
    let changed = calls.into_iter().filter(|edit| edit.old != edit.new).map(Call::Edit);
    let moved = moved.map(|to| Call::Shell(format!("mv -- {} {}", quoted(path), quoted(to.trim()))));
    changed.chain(moved).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_patch_becomes_what_it_does() {
        let patch = "*** Begin Patch\n*** Add File: a\n+x\n+\n*** Update File: b\n*** Move to: d\n@@ fn y\n k\n-y\n+z\n\
                     @@\n-q\n*** Delete File: c\n*** End Patch\n";
        let edit = |old: &str, new: &str| {
            Call::Edit(EditFile { path: "b".to_owned(), old: old.to_owned(), new: new.to_owned() })
        };
        assert_eq!(
            calls(patch),
            [
                Call::Write(WriteFile { path: "a".to_owned(), text: "x\n\n".to_owned() }),
                edit("k\ny\n", "k\nz\n"),
                edit("q\n", ""),
                Call::Shell("mv -- 'b' 'd'".to_owned()),
                Call::Shell("rm -- 'c'".to_owned()),
            ]
        );
    }
}
