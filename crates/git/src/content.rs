//! The files of a checkout that are no blobs of its tree: those that Git LFS keeps, and those of submodules. Both come from the
//! target's own work tree and submodules, and are checked against what the base records.

mod attributes;
mod lfs;
mod submodules;

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use herma_core::content::{MissingContent, MissingReason};
use herma_core::report::Entry;
use herma_core::{Digest, RepoPath};
use sha2::{Digest as _, Sha256};

use crate::error::GitError;
use crate::git_dir::{CheckoutContent, GitDir, Submodule};
use crate::source::SourceRepo;
use crate::tree_entry::TreeEntry;

impl SourceRepo {
    /// The same git directory with the content of LFS files and submodules that the target has, and the list of what it does not
    /// have. herma's copies are made below `git_dir`; no filter and no other program is run for them.
    pub fn with_content(
        &self,
        git_dir: GitDir,
        entries: &[TreeEntry],
    ) -> Result<(GitDir, Vec<MissingContent>), GitError> {
        let mut missing = Vec::new();
        let mut content = CheckoutContent::default();
        let read = lfs::read(self, &git_dir, entries, &mut content, &mut missing)
            .and_then(|()| submodules::read(self, &git_dir, entries, &mut content, &mut missing));
        read.map_err(|e| self.unplaced(e))?;
        missing.sort();
        Ok((git_dir.with(content), missing))
    }
}

impl GitDir {
    fn with(mut self, content: CheckoutContent) -> Self {
        self.content = Arc::new(content);
        self
    }

    /// The same git directory for checkouts of nothing but the tree's own blobs.
    #[must_use]
    pub fn without_content(&self) -> Self {
        self.clone().with(CheckoutContent::default())
    }

    /// The same git directory with the content of another one's checkouts.
    #[must_use]
    pub fn with_content_of(mut self, other: &Self) -> Self {
        self.content = Arc::clone(&other.content);
        self
    }

    /// The tree of these entries as a checkout of it has it: with the content of pointers, and the files of submodules.
    #[must_use]
    pub fn checked_out<'a>(&self, entries: &'a [TreeEntry]) -> Cow<'a, [TreeEntry]> {
        if self.content.is_empty() {
            return Cow::Borrowed(entries);
        }
        let mut all = Vec::with_capacity(entries.len());
        for entry in entries {
            match (self.content.lfs_file(entry), self.content.submodule(entry)) {
                (Some(file), _) => {
                    let entry_of_file = Entry { mode: entry.entry.mode, id: file.id.clone() };
                    all.push(TreeEntry { path: entry.path.clone(), entry: entry_of_file });
                }
                (None, submodule) => {
                    all.push(entry.clone());
                    all.extend(submodule.into_iter().flat_map(|submodule| submodule.below(&entry.path)));
                }
            }
        }
        all.sort_by(|a, b| a.path.cmp(&b.path));
        Cow::Owned(all)
    }

    /// Whether Git LFS keeps what is at this path: by a pointer of the base, or by the base's attributes.
    pub fn kept_by_lfs(&self, paths: &[&RepoPath]) -> Result<BTreeSet<RepoPath>, GitError> {
        let Some(attributes) = &self.content.attributes else { return Ok(BTreeSet::new()) };
        let mut kept: BTreeSet<RepoPath> = attributes::kept_by_lfs(attributes, paths)?;
        kept.extend(paths.iter().filter(|path| self.content.pointers.contains(**path)).copied().cloned());
        Ok(kept)
    }

    /// The digest over what checkouts hold beside the tree; none if that is nothing.
    #[must_use]
    pub fn content_digest(&self) -> Option<Digest> {
        (!self.content.is_empty()).then(|| self.content.digest())
    }
}

impl CheckoutContent {
    fn digest(&self) -> Digest {
        let mut hash = Sha256::new();
        for (pointer, file) in &self.lfs {
            hash.update(format!("{pointer} {}\0", file.id));
        }
        for (path, submodule) in &self.submodules {
            let below = submodule.git_dir.content_digest().map(|digest| digest.to_string());
            hash.update([path.as_bytes(), b" ", submodule.commit.as_bytes(), b"\0"].concat());
            hash.update(below.unwrap_or_default());
        }
        Digest::from_bytes(hash.finalize().into())
    }
}

impl Submodule {
    /// Its files as a checkout of the repository around it has them.
    fn below<'a>(&'a self, path: &'a RepoPath) -> impl Iterator<Item = TreeEntry> + 'a {
        let files = self.git_dir.checked_out(&self.entries).into_owned().into_iter();
        files.filter_map(|file| Some(TreeEntry { path: inside(path, &file.path)?, entry: file.entry }))
    }
}

/// A path inside a submodule, as the repository around it names it.
fn inside(submodule: &RepoPath, path: &RepoPath) -> Option<RepoPath> {
    RepoPath::new([submodule.as_bytes(), b"/", path.as_bytes()].concat())
}

fn missing(path: &RepoPath, reason: MissingReason) -> MissingContent {
    MissingContent { path: path.clone(), reason }
}

/// Makes a directory of herma's own below its git directory.
fn make_dir(git_dir: &GitDir, name: &str) -> Result<PathBuf, GitError> {
    let dir: &Path = &git_dir.dir().join(name);
    std::fs::create_dir_all(dir).map_err(GitError::file("make", dir))?;
    Ok(dir.to_owned())
}
