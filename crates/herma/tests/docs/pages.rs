//! The pages: every Markdown file of the house, read from the repository.

use std::path::{Path, PathBuf};

/// One page.
pub(crate) struct Page {
    /// Its path from the repository's top.
    pub(crate) path: String,
    /// Its text.
    pub(crate) text: String,
}

/// The repository's top.
pub(crate) fn top() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Every page at the top and below `docs/`, in order of path.
pub(crate) fn all() -> Vec<Page> {
    let mut files = Vec::new();
    find(&top(), false, &mut files);
    find(&top().join("docs"), true, &mut files);
    files.sort();
    let pages: Vec<Page> = files.iter().map(|file| read(file)).collect();
    assert!(pages.len() > 10, "only {} pages were found", pages.len());
    pages
}

/// One page by its path from the repository's top.
pub(crate) fn named(path: &str) -> Page {
    read(&top().join(path))
}

fn read(file: &Path) -> Page {
    let path = file.strip_prefix(top()).unwrap().to_str().unwrap().to_owned();
    let text = std::fs::read_to_string(file).unwrap_or_else(|e| panic!("{path}: {e}"));
    Page { path, text }
}

fn find(dir: &Path, deep: bool, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            if deep {
                find(&path, true, files);
            }
        } else if path.extension().is_some_and(|ext| ext == "md") {
            files.push(path);
        }
    }
}
