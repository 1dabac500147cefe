//! The files of a checkout that are no blobs of its tree.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use herma_core::RepoPath;
use herma_core::report::Mode;

use super::GitDir;
use crate::index::Shown;
use crate::tree_entry::TreeEntry;

/// The content of checkouts beside the blobs of the base.
#[derive(Debug, Default)]
pub(crate) struct CheckoutContent {
    /// The files of pointers, by the pointer's blob id.
    pub(crate) lfs: BTreeMap<String, LfsFile>,
    /// Every path of the base that has a pointer, with or without its file.
    pub(crate) pointers: BTreeSet<RepoPath>,
    /// A git directory whose index is the base, where some path is kept by Git LFS.
    pub(crate) attributes: Option<GitDir>,
    pub(crate) submodules: BTreeMap<RepoPath, Submodule>,
}

/// A file that Git LFS keeps.
#[derive(Clone, Debug)]
pub(crate) struct LfsFile {
    /// The id that its content would have as a blob.
    pub(crate) id: String,
    /// herma's own copy.
    pub(crate) copy: PathBuf,
}

/// A submodule whose recorded commit is there.
#[derive(Clone, Debug)]
pub(crate) struct Submodule {
    pub(crate) commit: String,
    /// It reads the submodule's objects.
    pub(crate) git_dir: GitDir,
    pub(crate) entries: Vec<TreeEntry>,
}

impl CheckoutContent {
    pub(crate) fn is_empty(&self) -> bool {
        self.lfs.is_empty() && self.submodules.is_empty()
    }

    /// The file in whose place this entry has a pointer.
    pub(crate) fn lfs_file(&self, entry: &TreeEntry) -> Option<&LfsFile> {
        let is_file = matches!(entry.entry.mode, Mode::File | Mode::Executable);
        if is_file { self.lfs.get(&entry.entry.id) } else { None }
    }

    /// How git is to see an entry of a checkout.
    pub(crate) fn shown(&self, entry: &TreeEntry) -> Shown {
        if self.lfs_file(entry).is_some() { Shown::Unchanged } else { Shown::Plain }
    }

    /// The submodule at this entry.
    pub(crate) fn submodule(&self, entry: &TreeEntry) -> Option<&Submodule> {
        let submodule = self.submodules.get(&entry.path).filter(|_| entry.entry.mode == Mode::Submodule)?;
        (submodule.commit == entry.entry.id).then_some(submodule)
    }
}
