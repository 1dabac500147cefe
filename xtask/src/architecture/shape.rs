//! The longest function and the longest file of a crate.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::command::TaskError;
use crate::rust_source::{Part, item_end, only, rust_files, without_tests};

/// The longest of its kind.
pub(crate) struct Longest {
    pub(crate) lines: usize,
    /// File and line below the root of the workspace, and a name.
    pub(crate) place: String,
}

/// The longest file of a crate, tests included.
pub(crate) fn longest_file(dir: &Path, root: &Path) -> Result<Option<Longest>, TaskError> {
    let mut longest: Option<Longest> = None;
    for file in rust_files(dir)? {
        let lines = fs::read_to_string(&file).map_err(TaskError::file(&file))?.lines().count();
        if longest.as_ref().is_none_or(|longest| lines > longest.lines) {
            longest = Some(Longest { lines, place: below(&file, root) });
        }
    }
    Ok(longest)
}

/// The longest function below `src` that is not a test.
pub(crate) fn longest_function(src: &Path, root: &Path) -> Result<Option<Longest>, TaskError> {
    let mut longest: Option<Longest> = None;
    for file in rust_files(src)? {
        let source = fs::read_to_string(&file).map_err(TaskError::file(&file))?;
        let code = without_tests(&only(&source, Part::Code), &mut BTreeSet::new());
        for (at, _) in code.match_indices("fn ") {
            if code[..at].chars().next_back().is_some_and(|before| before.is_alphanumeric() || before == '_')
            {
                continue;
            }
            let body = &code[at..at + item_end(&code[at..])];
            let lines = body.lines().count();
            if longest.as_ref().is_none_or(|longest| lines > longest.lines) {
                let line = code[..at].matches('\n').count() + 1;
                let name: String = body[3..]
                    .chars()
                    .take_while(|character| character.is_alphanumeric() || *character == '_')
                    .collect();
                longest = Some(Longest { lines, place: format!("{}:{line} {name}", below(&file, root)) });
            }
        }
    }
    Ok(longest)
}

fn below(file: &Path, root: &Path) -> String {
    file.strip_prefix(root).unwrap_or(file).display().to_string()
}
