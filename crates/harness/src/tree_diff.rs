//! The base tree of a run, and what a directory changes of it.

use std::collections::{BTreeMap, BTreeSet};

use herma_core::RepoPath;
use herma_core::report::{ChangedFile, Entry, Mode};
use herma_git::{Baseline, GitDir, TreeEntry, WalkResult, tree_id};
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
}

/// Makes herma's own git directory and lists the base tree.
pub(crate) fn base_tree(
    installation: &Installation,
    target: &FoundTarget,
    dirs: &RunDirs,
) -> Result<BaseTree, Stop> {
    let (git_dir, baseline) = target.baseline(installation, &dirs.git())?;
    let entries = git_dir.entries(&baseline.tree)?;
    Ok(BaseTree { git_dir, baseline, entries })
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
