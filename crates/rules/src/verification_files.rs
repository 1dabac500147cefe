//! Changed files that influence verification: build files, runner and linter configuration, a script that a command
//! runs, a module that shadows a test runner. They are reported like changed tests, and verification runs a second
//! time with the originals.

mod commands;
mod shadows;
mod table;

use std::sync::LazyLock;

use herma_core::RepoPath;
use herma_core::report::ChangedFile;

use self::commands::NamedFiles;
pub use self::shadows::{PYTHON_LIBRARY, PYTHON_ROOTS, PYTHON_RUNNERS, SHADOWS};
pub use self::table::{DECIDING, Deciding};
use crate::forbidden_paths;
use crate::glob::{PathKind, prefixes};
use crate::pattern_table::PatternTable;
use crate::test_files::looks_like_test;

/// Files, by their own name.
static NAMES: LazyLock<PatternTable> =
    LazyLock::new(|| PatternTable::new(patterns().filter(|p| !p.ends_with('/'))));
/// Directories, with all that is below them.
static DIRECTORIES: LazyLock<PatternTable> =
    LazyLock::new(|| PatternTable::new(patterns().filter(|p| p.ends_with('/'))));
/// Forbidden paths that a contract lifted, and that decide what verification does.
static LIFTED: LazyLock<PatternTable> = LazyLock::new(|| {
    let deciding = forbidden_paths::built_in().iter().filter(|path| path.decides_verification);
    PatternTable::new(deciding.map(|path| path.pattern))
});

/// Every pattern of the table.
pub(crate) fn patterns() -> impl Iterator<Item = &'static str> {
    DECIDING.iter().flat_map(|group| group.patterns.iter().copied())
}

/// The files that decide what the verification commands of one contract do.
#[derive(Debug)]
pub struct VerificationFiles {
    named: NamedFiles,
}

impl VerificationFiles {
    /// For these commands.
    #[must_use]
    pub fn of<'a>(commands: impl IntoIterator<Item = &'a String>) -> Self {
        Self { named: NamedFiles::of(commands.into_iter().map(String::as_str)) }
    }

    /// Whether a change decides what verification does. A test is not counted: it is shown as a test.
    #[must_use]
    pub fn decides(&self, change: &ChangedFile) -> bool {
        let path = &change.path;
        !looks_like_test(path)
            && (is_deciding(path)
                || self.named.has(path)
                || (change.old.is_none() && shadows::shadows_a_runner(path)))
    }
}

/// Whether the tables have the path.
fn is_deciding(path: &RepoPath) -> bool {
    let bytes = path.as_bytes();
    NAMES.hit(bytes, PathKind::Leaf).is_some()
        || prefixes(bytes, PathKind::Leaf).any(|(part, kind)| {
            (kind == PathKind::Directory && DIRECTORIES.hit(part, kind).is_some())
                || LIFTED.hit(part, kind).is_some()
        })
}
