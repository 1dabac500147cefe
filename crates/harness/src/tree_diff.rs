//! The base tree of a run, and what a directory changes of it.

use std::collections::{BTreeMap, BTreeSet};

use herma_core::RepoPath;
use herma_core::environment::History;
use herma_core::report::{ChangedFile, Entry, Mode};
use herma_environments::build;
use herma_git::{
    BaseHistory, Baseline, CheckoutRepository, CommitOnBase, GitDir, GitError, TreeEntry, WalkResult, tree_id,
};
use herma_home::RunDirs;
use herma_rules::names::is_dot_gitmodules;

use crate::error::Stop;
use crate::installation::Installation;
use crate::target::FoundTarget;

/// The base tree, in herma's own git directory.
pub(crate) struct BaseTree {
    pub(crate) git_dir: GitDir,
    pub(crate) baseline: Baseline,
    pub(crate) entries: Vec<TreeEntry>,
    /// The history of its checkouts.
    pub(crate) history: GivenHistory,
}

/// The history that workspaces and checkouts get.
pub(crate) enum GivenHistory {
    /// None.
    None,
    /// This one.
    Of(Box<BaseHistory>),
    /// The repository does not have it.
    Unreadable(GitError),
}

impl BaseTree {
    /// The history of its checkouts, where they have one.
    pub(crate) fn history(&self) -> Option<&BaseHistory> {
        match &self.history {
            GivenHistory::Of(history) => Some(history),
            GivenHistory::None | GivenHistory::Unreadable(_) => None,
        }
    }

    /// The repository of a checkout of it; of a result, with a commit on top.
    pub(crate) fn repository<'a>(&'a self, top: Option<&'a CommitOnBase>) -> Option<CheckoutRepository<'a>> {
        self.history().map(|history| CheckoutRepository { history, top })
    }

    /// Its commit with these changes, where checkouts have a history.
    pub(crate) fn commit_on_top<'a>(
        &self,
        changes: impl IntoIterator<Item = &'a ChangedFile>,
    ) -> Result<Option<CommitOnBase>, GitError> {
        let Some(history) = self.history() else { return Ok(None) };
        history.commit_on_top(&self.git_dir, &self.baseline.tree, changes).map(Some)
    }

    /// The base as environments are built for it.
    pub(crate) fn to_build(&self) -> build::BaseTree<'_> {
        build::BaseTree {
            git_dir: &self.git_dir,
            tree: &self.baseline.tree,
            entries: &self.entries,
            repository: self.repository(None),
        }
    }
}

/// Makes herma's own git directory and lists the base tree.
pub(crate) fn base_tree(
    installation: &Installation,
    (target, history): (&FoundTarget, History),
    dirs: &RunDirs,
) -> Result<BaseTree, Stop> {
    let (git_dir, baseline) = target.baseline(installation, &dirs.git())?;
    let entries = git_dir.entries(&baseline.tree)?;
    let history = match target.history(&git_dir, &baseline, history) {
        Ok(None) => GivenHistory::None,
        Ok(Some(history)) => GivenHistory::Of(Box::new(history)),
        Err(full) if full.is_write_failure() => return Err(full.into()),
        Err(error) => GivenHistory::Unreadable(error),
    };
    Ok(BaseTree { git_dir, baseline, entries, history })
}

/// The differences from the baseline, and the new paths.
pub(crate) fn compare(base: &BaseTree, found: &WalkResult) -> (Vec<ChangedFile>, Vec<RepoPath>) {
    let mut changes = Vec::new();
    let mut known = BTreeSet::new();
    for old in &base.entries {
        known.insert(&old.path);
        let new = found.entries.get(&old.path);
        // An untouched submodule is an empty directory, which the walk does not list.
        let untouched_submodule =
            old.entry.mode == Mode::Submodule && new.is_none() && !has_below(found, &old.path);
        if new != Some(&old.entry) && !untouched_submodule {
            changes.push(ChangedFile {
                path: old.path.clone(),
                old: Some(old.entry.clone()),
                new: new.cloned(),
            });
        }
    }
    let added: Vec<RepoPath> = found.entries.keys().filter(|path| !known.contains(path)).cloned().collect();
    changes.extend(added.iter().map(|path| ChangedFile {
        path: path.clone(),
        old: None,
        new: found.entries.get(path).cloned(),
    }));
    changes.sort_by(|a, b| a.path.cmp(&b.path));
    (changes, added)
}

/// Takes the links out of the changes that git refuses to record: neither a commit nor a patch can hold them.
pub(crate) fn take_refused_by_git(changes: &mut Vec<ChangedFile>) -> Vec<RepoPath> {
    let is_refused = |change: &ChangedFile| {
        change.new.as_ref().is_some_and(|new| new.mode == Mode::Symlink)
            && change.path.components().any(is_dot_gitmodules)
    };
    let refused =
        changes.iter().filter(|change| is_refused(change)).map(|change| change.path.clone()).collect();
    changes.retain(|change| !is_refused(change));
    refused
}

/// Whether there is an entry below that path.
fn has_below(found: &WalkResult, directory: &RepoPath) -> bool {
    let prefix = [directory.as_bytes(), b"/"].concat();
    found.entries.keys().any(|path| path.as_bytes().starts_with(&prefix))
}

pub(crate) fn submodules(base: &BaseTree) -> Vec<RepoPath> {
    let is_submodule = |e: &&TreeEntry| e.entry.mode == Mode::Submodule;
    base.entries.iter().filter(is_submodule).map(|e| e.path.clone()).collect()
}

/// The id of the tree that the changes make of the baseline, computed without git.
pub(crate) fn expected_tree(base: &BaseTree, changes: &[ChangedFile]) -> String {
    let tree = changed(base, changes);
    let entries: Vec<_> = tree.into_iter().collect();
    tree_id(base.git_dir.format(), &entries)
}

/// The tree that the changes make of the baseline.
pub(crate) fn with_changes<'a>(
    base: &'a BaseTree,
    changes: impl IntoIterator<Item = &'a ChangedFile>,
) -> Vec<TreeEntry> {
    let tree = changed(base, changes).into_iter();
    tree.map(|(path, entry)| TreeEntry { path: path.clone(), entry: entry.clone() }).collect()
}

fn changed<'a>(
    base: &'a BaseTree,
    changes: impl IntoIterator<Item = &'a ChangedFile>,
) -> BTreeMap<&'a RepoPath, &'a Entry> {
    let mut tree: BTreeMap<&RepoPath, &Entry> = base.entries.iter().map(|e| (&e.path, &e.entry)).collect();
    for change in changes {
        match &change.new {
            Some(new) => tree.insert(&change.path, new),
            None => tree.remove(&change.path),
        };
    }
    tree
}
