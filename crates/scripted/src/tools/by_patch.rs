//! Patches in the form that begins with `*** Begin Patch`: what they say file by file, and how a write or an edit is
//! said in it.

use std::fmt::Write as _;

use crate::call::{Call, EditFile, WriteFile};

/// Whether the text is such a patch and not a unified diff.
pub(super) fn is_apply_patch(patch: &str) -> bool {
    patch.trim_start().starts_with("*** Begin Patch")
}

/// The patch that does what `call` wants; none where a patch cannot.
pub(super) fn patch(call: &Call) -> Option<String> {
    let body = match call {
        Call::Write(file) => add(file),
        Call::Edit(file) => update(file),
        Call::Patch(patch) => return Some(patch.clone()),
        _ => return None,
    };
    Some(format!("*** Begin Patch\n{body}*** End Patch\n"))
}

fn add(file: &WriteFile) -> String {
    let mut body = format!("*** Add File: {}\n", file.path);
    lines(&mut body, '+', &file.text);
    body
}

/// Such a patch knows whole lines only.
fn update(file: &EditFile) -> String {
    let mut body = format!("*** Update File: {}\n@@\n", file.path);
    lines(&mut body, '-', &file.old);
    lines(&mut body, '+', &file.new);
    body
}

fn lines(body: &mut String, sign: char, text: &str) {
    for line in text.lines() {
        let _ = writeln!(body, "{sign}{line}");
    }
}

/// The operation of a patch on one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileOperation {
    /// `create_file`, `update_file` or `delete_file`.
    pub kind: &'static str,
    /// Which file.
    pub path: String,
    /// Its lines of the patch; none where it is deleted.
    pub diff: Option<String>,
}

/// The operations of a patch, in order.
pub(super) fn operations(patch: &str) -> Vec<FileOperation> {
    let mut operations: Vec<FileOperation> = Vec::new();
    for line in patch.lines() {
        let heading = [
            ("*** Add File: ", "create_file"),
            ("*** Update File: ", "update_file"),
            ("*** Delete File: ", "delete_file"),
        ]
        .into_iter()
        .find_map(|(lead, kind)| Some((kind, line.strip_prefix(lead)?)));
        if let Some((kind, path)) = heading {
            let diff = (kind != "delete_file").then(String::new);
            operations.push(FileOperation { kind, path: path.trim().to_owned(), diff });
        } else if line.starts_with("*** Begin Patch") || line.starts_with("*** End Patch") {
        } else if let Some(FileOperation { diff: Some(diff), .. }) = operations.last_mut() {
            let _ = writeln!(diff, "{line}");
        }
    }
    operations
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_patch_is_taken_apart_file_by_file() {
        let patch = "*** Begin Patch\n*** Add File: a\n+x\n*** Update File: b\n@@\n-y\n+z\n*** Delete File: c\n*** End Patch\n";
        let operation = |kind, path: &str, diff: Option<&str>| FileOperation {
            kind,
            path: path.to_owned(),
            diff: diff.map(str::to_owned),
        };
        assert_eq!(
            operations(patch),
            [
                operation("create_file", "a", Some("+x\n")),
                operation("update_file", "b", Some("@@\n-y\n+z\n")),
                operation("delete_file", "c", None),
            ]
        );
    }
}
