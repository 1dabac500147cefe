//! Recorded answers for the tests. The crate `dialect` has them.

use std::fs;
use std::path::{Path, PathBuf};

use herma_dialect::Dialect;

/// A golden file, by its path.
pub(crate) fn golden(path: &str) -> Vec<u8> {
    fs::read(dir().join(path)).unwrap()
}

/// All golden files of a dialect that end like this, by their paths.
pub(crate) fn all_golden(dialect: Dialect, extension: &str) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(dir().join(dialect.to_string()))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.ends_with(extension))
        .map(|name| format!("{dialect}/{name}"))
        .collect();
    names.sort();
    names
}

fn dir() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../dialect/tests/golden")
}
