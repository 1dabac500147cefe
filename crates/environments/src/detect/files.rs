//! The files of a repository, as far as detection reads them.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use herma_files::read_regular;

/// The largest manifest that is read.
const MAX_BYTES: u64 = 4 << 20;
/// How many paths are listed. Manifests are near the root, which is listed first.
const MAX_PATHS: usize = 200_000;
/// Directories that hold dependencies or output, never the project's own manifests.
const SKIPPED: [&str; 8] = [".git", ".hg", ".tox", ".venv", "node_modules", "target", "venv", "__pycache__"];

/// Whether a path has one of these extensions.
pub(super) fn has_extension(path: &str, extensions: &[&str]) -> bool {
    let extension = Path::new(path).extension().and_then(|end| end.to_str());
    extension.is_some_and(|extension| extensions.contains(&extension))
}

/// A directory with the paths of its files.
#[derive(Clone, Debug)]
pub struct RepositoryFiles {
    root: PathBuf,
    paths: BTreeSet<String>,
}

impl RepositoryFiles {
    /// Lists a directory without following links.
    pub fn list(root: &Path) -> io::Result<Self> {
        let mut paths = BTreeSet::new();
        let mut pending = std::collections::VecDeque::from([PathBuf::new()]);
        while let Some(below) = pending.pop_front() {
            for entry in fs::read_dir(root.join(&below))? {
                let entry = entry?;
                let Ok(name) = entry.file_name().into_string() else { continue };
                let (path, kind) = (below.join(&name), entry.file_type()?);
                if kind.is_dir() && !SKIPPED.contains(&name.as_str()) {
                    pending.push_back(path);
                } else if kind.is_file() && paths.len() < MAX_PATHS {
                    paths.extend(path.to_str().map(ToOwned::to_owned));
                }
            }
        }
        Ok(Self { root: root.to_owned(), paths })
    }

    /// The same without the other files.
    #[must_use]
    pub fn only(mut self, is_wanted: impl Fn(&str) -> bool) -> Self {
        self.paths.retain(|path| is_wanted(path));
        self
    }

    /// Every path, in order.
    pub fn paths(&self) -> impl Iterator<Item = &str> {
        self.paths.iter().map(String::as_str)
    }

    /// Whether there is a file at this path.
    #[must_use]
    pub fn has(&self, path: &str) -> bool {
        self.paths.contains(path)
    }

    /// The first of these paths that is there.
    #[must_use]
    pub fn first<'a>(&self, paths: &[&'a str]) -> Option<&'a str> {
        paths.iter().copied().find(|path| self.has(path))
    }

    /// Whether there is a file below this directory.
    #[must_use]
    pub fn has_below(&self, dir: &str) -> bool {
        self.below(dir).next().is_some()
    }

    /// The paths below a directory.
    pub fn below<'a>(&'a self, dir: &str) -> impl Iterator<Item = &'a str> {
        let start = format!("{dir}/");
        let from = self.paths.range(start.clone()..);
        from.map(String::as_str).take_while(move |path| path.starts_with(&start))
    }

    /// The text of a file.
    #[must_use]
    pub fn read(&self, path: &str) -> Option<String> {
        if !self.has(path) {
            return None;
        }
        String::from_utf8(read_regular(&self.root.join(path), MAX_BYTES).ok()?).ok()
    }
}
