//! The `.git` of a workspace or a checkout with history. It is written once, before any process but herma's can reach it, and herma
//! never runs git in it.

use std::path::{Path, PathBuf};

use herma_core::Digest;
use herma_core::report::ChangedFile;

use super::{BaseHistory, pack_objects, write_shallow};
use crate::error::GitError;
use crate::git_dir::{GitDir, skeleton};
use crate::index::index;
use crate::tree_entry::TreeEntry;

/// A commit of a result on the base, and the pack of its objects.
#[derive(Clone, Debug)]
pub struct CommitOnBase {
    /// The commit id.
    pub commit: String,
    /// The tree id.
    pub tree: String,
    /// The pack, without its extension.
    pack: PathBuf,
}

/// The repository of a checkout: a history, and at most one commit on top of it.
#[derive(Clone, Copy, Debug)]
pub struct CheckoutRepository<'a> {
    /// The history of the base.
    pub history: &'a BaseHistory,
    /// The commit that is checked out, where that is not the base.
    pub top: Option<&'a CommitOnBase>,
}

impl BaseHistory {
    /// Commits `changes` of the base tree, whose contents `git_dir` has, on top of the base. Equal changes give equal ids.
    pub fn commit_on_top<'a>(
        &self,
        git_dir: &GitDir,
        base_tree: &str,
        changes: impl IntoIterator<Item = &'a ChangedFile>,
    ) -> Result<CommitOnBase, GitError> {
        let made = git_dir.commit_known(&self.commit, self.seconds, changes)?;
        let without_base = format!("^{base_tree}");
        let args = ["rev-list", "--objects", "--no-object-names", &made.tree, &without_base];
        let objects = git_dir.git().call(git_dir.dir(), args).checked()?.stdout;
        let objects = format!("{}{}\n", String::from_utf8_lossy(&objects), made.commit);
        let dir = git_dir.dir().join("checkouts");
        std::fs::create_dir_all(&dir).map_err(GitError::file("make", &dir))?;
        let pack = pack_objects(git_dir, &[], objects, &dir.join("pack"))?;
        Ok(CommitOnBase { commit: made.commit, tree: made.tree, pack })
    }

    /// Copies the history into the new git directory `own`: a link or an alternate would let a process write to, or read more than,
    /// what it was given.
    pub(crate) fn write(&self, own: &Path) -> Result<(), GitError> {
        copy_pack(&self.pack, own)?;
        write_shallow(own, &self.boundary)?;
        let tags: String = self.tags.iter().flat_map(|tag| [&tag.id, " ", &tag.name, "\n"]).collect();
        let file = own.join("packed-refs");
        std::fs::write(&file, tags).map_err(GitError::file("write", file))
    }
}

impl CheckoutRepository<'_> {
    /// The digest over everything that git can tell about its commits and tags.
    #[must_use]
    pub fn digest(&self) -> Digest {
        let top = self.top.map_or("", |top| &top.commit);
        Digest::of(format!("{}\n{top}\n", self.history.digest()).as_bytes())
    }

    /// Makes `.git` in a checkout whose files, those of `entries`, are laid out.
    pub fn make(&self, entries: &[TreeEntry], checkout: &Path) -> Result<(), GitError> {
        let own = checkout.join(".git");
        let format = self.history.dir.format();
        skeleton(&own, format, false)?;
        self.history.write(&own)?;
        let head = match self.top {
            None => &self.history.commit,
            Some(top) => {
                copy_pack(&top.pack, &own)?;
                &top.commit
            }
        };
        let branch = own.join("refs/heads/main");
        std::fs::write(&branch, format!("{head}\n")).map_err(GitError::file("write", branch))?;
        let file = own.join("index");
        std::fs::write(&file, index(format, entries, &|entry| self.history.content.shown(entry)))
            .map_err(GitError::file("write", file))
    }
}

fn copy_pack(pack: &Path, own: &Path) -> Result<(), GitError> {
    for extension in ["pack", "idx"] {
        let from = pack.with_extension(extension);
        let to = own.join("objects/pack").join(from.file_name().unwrap_or_default());
        std::fs::copy(&from, &to).map_err(GitError::file("copy the history to", to))?;
    }
    Ok(())
}
