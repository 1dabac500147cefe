//! The files of a bundle's directory.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::layout;

/// The number of problems that are listed; one is enough to fail.
const MAX_PROBLEMS: usize = 16;

/// The files of a bundle, and unexpected entries.
#[derive(Debug, Default)]
pub(super) struct BundleListing {
    pub(super) names: BTreeSet<String>,
    pub(super) problems: Vec<String>,
}

/// Lists a bundle. Nothing is followed and nothing is opened.
pub(super) fn list(dir: &Path) -> BundleListing {
    let mut listing = BundleListing::default();
    listing.level(dir, "");
    listing
}

impl BundleListing {
    fn level(&mut self, dir: &Path, prefix: &str) {
        let shown = if prefix.is_empty() { "the bundle" } else { layout::ENGINE_DIR };
        let entries = match fs::read_dir(dir) {
            Ok(entries) => entries,
            Err(error) => return self.problem(format!("{shown} could not be listed: {error}")),
        };
        let mut empty = true;
        for entry in entries {
            empty = false;
            if self.problems.len() >= MAX_PROBLEMS {
                return;
            }
            match entry.and_then(|entry| Ok((entry.file_type()?, entry))) {
                Ok((kind, entry)) => self.entry(&entry, kind, prefix),
                Err(error) => self.problem(format!("{shown} could not be listed: {error}")),
            }
        }
        if empty {
            self.problem(format!("{shown} is empty"));
        }
    }

    fn entry(&mut self, entry: &fs::DirEntry, kind: fs::FileType, prefix: &str) {
        let leaf = entry.file_name();
        let name = format!("{prefix}{}", leaf.to_string_lossy().escape_debug());
        if name == layout::ENGINE_DIR && kind.is_dir() {
            return self.level(&entry.path(), "engine/");
        }
        if !kind.is_file() {
            return self.problem(format!("{name} is not a regular file"));
        }
        if !layout::is_known(&name) && name != layout::OUTCOME {
            return self.problem(format!("{name} is extra"));
        }
        self.names.insert(name);
    }

    fn problem(&mut self, problem: String) {
        self.problems.push(problem);
    }
}
