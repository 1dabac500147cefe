//! The place of a mistake in a file, as editors and terminals link it.

use std::path::Path;

use herma_core::contract::BadContract;
use herma_core::visible::visible_line;

/// `FILE:LINE:COLUMN: problem; expected`
pub(crate) fn at_place(file: &Path, bad: &BadContract) -> String {
    let place = match (bad.line, bad.column) {
        (Some(line), Some(column)) => format!("{}:{line}:{column}", file.display()),
        _ => file.display().to_string(),
    };
    let expected = if bad.expected.is_empty() { String::new() } else { format!("; {}", bad.expected) };
    format!("{place}: {}", visible_line(&format!("{}{expected}", bad.problem)))
}
