//! The base tree of a run, and what a directory changes of it.

use std::collections::{BTreeMap, BTreeSet};

use herma_core::RepoPath;
use herma_core::content::MissingContent;
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
    /// Its submodules and LFS files that the target does not have.
    pub(crate) missing: Vec<MissingContent>,
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

    /// Whether it has a file of this size at this path.
    pub(crate) fn has_file(&self, path: &RepoPath, bytes: u64) -> bool {
        let at = self.entries.binary_search_by(|there| there.path.cmp(path));
        at.is_ok_and(|at| self.git_dir.blob_bytes(&self.entries[at]) == Some(bytes))
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
    let (git_dir, missing) = target.with_content(git_dir, &entries)?;
    let history = match target.history(&git_dir, &baseline, history) {
        Ok(None) => GivenHistory::None,
        Ok(Some(history)) => GivenHistory::Of(Box::new(history)),
        Err(full) if full.is_write_failure() => return Err(full.into()),
        Err(error) => GivenHistory::Unreadable(error),
    };
    Ok(BaseTree { git_dir, baseline, entries, missing, history })
}

/// A sentence about content that the target does not have; none where it has everything.
pub(crate) fn missing_note(missing: &[MissingContent]) -> Option<String> {
    const SHOWN: usize = 5;
    let each = missing.iter().take(SHOWN);
    let shown: Vec<String> = each
        .map(|missing| format!("`{}` ({})", missing.path.shortened(), missing.reason.explain()))
        .collect();
    let more = match missing.len().saturating_sub(SHOWN) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let note = || format!("not in the target, and so not in the workspace: {}{more}", shown.join(", "));
    (!missing.is_empty()).then(note)
}

/// The differences of a directory from the baseline.
pub(crate) struct Compared {
    changes: Vec<ChangedFile>,
    /// The new paths.
    pub(crate) added: Vec<RepoPath>,
    /// Submodules of which a file is gone or changed.
    broken_submodules: BTreeSet<RepoPath>,
}

/// Compares a directory with the baseline.
pub(crate) fn compare(base: &BaseTree, found: &WalkResult) -> Compared {
    let mut compared =
        Compared { changes: Vec::new(), added: Vec::new(), broken_submodules: BTreeSet::new() };
    let expected = base.git_dir.checked_out(&base.entries);
    let expected: BTreeMap<&RepoPath, &Entry> =
        expected.iter().map(|there| (&there.path, &there.entry)).collect();
    let recorded: BTreeMap<&RepoPath, &Entry> =
        base.entries.iter().map(|there| (&there.path, &there.entry)).collect();
    for (path, wanted) in &expected {
        let (old, new) = (recorded.get(path).copied(), found.entries.get(*path));
        // The walk lists no directory, and a pointer in the place of its file is what the base has.
        let is_directory = wanted.mode == Mode::Submodule && new.is_none();
        if is_directory || new == Some(*wanted) || (old.is_some() && new == old) {
            continue;
        }
        // The files of a submodule are no part of the base's own tree.
        if old.is_none() {
            compared.broken_submodules.extend(around(base, path));
        }
        if old.is_some() || new.is_some() {
            let (old, new) = (old.cloned(), new.cloned());
            compared.changes.push(ChangedFile { path: (*path).clone(), old, new });
        }
    }
    compared.added = found.entries.keys().filter(|path| !expected.contains_key(path)).cloned().collect();
    compared.changes.extend(compared.added.iter().map(|path| ChangedFile {
        path: path.clone(),
        old: None,
        new: found.entries.get(path).cloned(),
    }));
    compared
}

impl Compared {
    /// The changes without these new paths, in order of path. A submodule with a change inside is one of them: the tree that results
    /// does not have it any more.
    pub(crate) fn without(self, ignored: &BTreeSet<RepoPath>, base: &BaseTree) -> Vec<ChangedFile> {
        let Self { mut changes, broken_submodules: mut broken, .. } = self;
        changes.retain(|change| !(change.old.is_none() && ignored.contains(&change.path)));
        if base.entries.iter().any(|there| there.entry.mode == Mode::Submodule) {
            broken.extend(changes.iter().filter_map(|change| around(base, &change.path)));
            let changed: BTreeSet<&RepoPath> = changes.iter().map(|change| &change.path).collect();
            broken.retain(|path| !changed.contains(path));
            let gone = base.entries.iter().filter(|there| broken.contains(&there.path));
            let gone = gone.map(|there| ChangedFile {
                path: there.path.clone(),
                old: Some(there.entry.clone()),
                new: None,
            });
            changes.extend(gone);
        }
        changes.sort_by(|a, b| a.path.cmp(&b.path));
        changes
    }
}

/// The submodule that this path is inside of.
fn around(base: &BaseTree, path: &RepoPath) -> Option<RepoPath> {
    let above = std::iter::successors(path.parent(), RepoPath::parent);
    let mut above = above.filter_map(|directory| {
        base.entries.binary_search_by(|there| there.path.cmp(&directory)).ok().map(|at| &base.entries[at])
    });
    above.find(|there| there.entry.mode == Mode::Submodule).map(|there| there.path.clone())
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
