//! One path of a git tree.

use herma_core::RepoPath;
use herma_core::report::Entry;

/// One path of a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TreeEntry {
    /// Its path.
    pub path: RepoPath,
    /// Its mode and object id.
    pub entry: Entry,
}

impl TreeEntry {
    /// Whether it is in the directory of this name at the top of the tree.
    #[must_use]
    pub fn is_below(&self, dir: &str) -> bool {
        self.path.as_bytes().strip_prefix(dir.as_bytes()).is_some_and(|rest| rest.starts_with(b"/"))
    }
}
