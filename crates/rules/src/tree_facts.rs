//! The facts about a result's tree that the path rules judge.

use std::collections::{BTreeMap, BTreeSet};

use herma_core::RepoPath;
use herma_core::report::ChangedFile;

/// The tree that an engine left, as herma itself saw it.
#[derive(Clone, Debug, Default)]
pub struct TreeFacts {
    /// The differences from the baseline. A rename is a deletion and an addition; both are judged.
    pub changes: Vec<ChangedFile>,
    /// Every path of the result's tree, for the search for case twins.
    pub paths: Vec<RepoPath>,
    /// The target of every changed symbolic link, and of the unchanged ones as far as they are known.
    pub links: BTreeMap<RepoPath, Vec<u8>>,
    /// The size of every changed regular file.
    pub sizes: BTreeMap<RepoPath, u64>,
    /// New files that never land because the baseline's ignore rules cover them: they count only if forbidden.
    pub ignored: Vec<RepoPath>,
    /// Files that are too large to be hashed.
    pub oversized: Vec<RepoPath>,
    /// Files and directories that herma may not read.
    pub unreadable: Vec<RepoPath>,
    /// FIFOs, sockets and devices.
    pub special_files: Vec<RepoPath>,
    /// Directories and files named `.git` below the root, in any spelling.
    pub nested_repositories: Vec<RepoPath>,
    /// Directories in which something has a path that is too long to be opened.
    pub too_deep: Vec<RepoPath>,
    /// Symbolic links that git records under no such name. They are not among the changes.
    pub refused_by_git: Vec<RepoPath>,
    /// The submodules of the baseline.
    pub submodules: Vec<RepoPath>,
    /// Changed paths whose content Git LFS keeps.
    pub lfs_files: BTreeSet<RepoPath>,
    /// Files of the agent's own repository that decide how git behaves and are not as herma made them.
    pub git_control_files: Vec<RepoPath>,
}
