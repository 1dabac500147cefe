//! Collects what the engine left: herma walks the tree itself, after every process of the agent is dead.

use std::collections::{BTreeMap, BTreeSet};

use herma_core::RepoPath;
use herma_core::event::PatchApplied;
use herma_core::report::{ChangedFile, Entry, Mode};
use herma_evidence::Redactor;
use herma_git::{ControlFiles, TreeEntry, WalkResult, tree_id, walk};
use herma_rules::VerificationFiles;
use herma_rules::allowed_paths::TreeFacts;
use herma_rules::names::is_dot_gitmodules;
use herma_rules::test_files::looks_like_test;

use crate::error::Stop;
use crate::run::{Ground, Run};

/// Walks the workspace, records the result as one commit, and hands over what the path rules need.
pub(crate) fn collect(
    run: &mut Run<'_>,
    ground: &Ground,
    control_files: &ControlFiles,
) -> Result<TreeFacts, Stop> {
    let workspace = run.dirs.workspace();
    let git_control_files = ControlFiles::read(&workspace)?.changed_since(control_files);
    let found = walk(&workspace, ground.git_dir.format())?;
    let (mut changes, added) = compare(ground, &found);
    let ignored = never_landing(run, ground, &added)?;
    changes.retain(|change| !(change.old.is_none() && ignored.contains(&change.path)));
    let refused_by_git = take_refused_by_git(&mut changes);

    let result = ground.git_dir.commit_changes(&ground.baseline, &workspace, &changes)?;
    // The tree that lands is the tree that was hashed.
    if expected_tree(ground, &changes) != result.tree {
        return Err(Stop::Internal("the workspace changed while it was collected".to_owned()));
    }

    let tree = TreeFacts {
        changes,
        paths: found.entries.into_keys().collect(),
        links: found.links,
        sizes: found.sizes,
        ignored: ignored.into_iter().collect(),
        oversized: found.oversized,
        unreadable: found.unreadable,
        special_files: found.specials,
        nested_repositories: found.nested_repositories,
        submodules: submodules(ground),
        too_deep: found.too_deep,
        refused_by_git,
        git_control_files,
    };
    let facts = &mut run.facts;
    let redactor = run.events.redactor();
    facts.secret =
        secret_in_the_patch(&tree, &redactor).or_else(|| secret_beside_the_patch(&tree, &redactor));
    facts.changed_tests = tree.changes.iter().map(|c| c.path.clone()).filter(looks_like_test).collect();
    let deciding = VerificationFiles::of(&run.contract.terms.verify);
    facts.changed_verification_files =
        tree.changes.iter().filter(|c| deciding.decides(c)).map(|c| c.path.clone()).collect();
    facts.changed_files.clone_from(&tree.changes);
    facts.ignored_files.clone_from(&tree.ignored);
    facts.result_tree = Some(result.tree.clone());
    facts.result_commit = Some(result.commit.clone());
    facts.save(&run.dirs.facts())?;
    run.record(PatchApplied {
        result_tree: result.tree,
        result_commit: result.commit,
        changed: tree.changes.len(),
    })?;
    Ok(tree)
}

/// The first secret in a name that the agent chose and that the patch shows. The target of a link is one too.
pub(crate) fn secret_in_the_patch(tree: &TreeFacts, redactor: &Redactor) -> Option<String> {
    let shown = tree.changes.iter().map(|change| &change.path);
    let found = secret_in_names(tree, redactor, shown)?;
    Some(format!("the patch holds a secret: {found} in the name of a file"))
}

/// The same for names that only the report shows.
fn secret_beside_the_patch(tree: &TreeFacts, redactor: &Redactor) -> Option<String> {
    if let Some(found) = secret_in_names(tree, redactor, &tree.ignored) {
        return Some(format!("the name of an ignored file holds a secret: {found}"));
    }
    let others = [
        &tree.oversized,
        &tree.special_files,
        &tree.nested_repositories,
        &tree.too_deep,
        &tree.refused_by_git,
        &tree.git_control_files,
    ];
    let found = secret_in_names(tree, redactor, others.into_iter().flatten())?;
    Some(format!("the name of a file that cannot be part of the patch holds a secret: {found}"))
}

fn secret_in_names<'a>(
    tree: &'a TreeFacts,
    redactor: &Redactor,
    paths: impl IntoIterator<Item = &'a RepoPath>,
) -> Option<&'static str> {
    paths.into_iter().find_map(|path| {
        let target = tree.links.get(path).map(Vec::as_slice);
        [Some(path.as_bytes()), target].into_iter().flatten().find_map(|name| redactor.first_secret(name))
    })
}

/// What differs from the baseline, and which paths are new.
pub(crate) fn compare(ground: &Ground, found: &WalkResult) -> (Vec<ChangedFile>, Vec<RepoPath>) {
    let mut changes = Vec::new();
    let mut known = BTreeSet::new();
    for old in &ground.entries {
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

/// Takes the links out of the changes that git records under no such name: neither a commit nor a patch can hold them.
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

/// Whether anything lies below that path.
fn has_below(found: &WalkResult, directory: &RepoPath) -> bool {
    let prefix = [directory.as_bytes(), b"/"].concat();
    found.entries.keys().any(|path| path.as_bytes().starts_with(&prefix))
}

/// New files that never land: those that the baseline's ignore rules cover, and the engine's scratch paths.
fn never_landing(run: &Run<'_>, ground: &Ground, added: &[RepoPath]) -> Result<BTreeSet<RepoPath>, Stop> {
    let mut ignored = ground.git_dir.ignored(&run.dirs.verification(), &ground.entries, added)?;
    if let Some(engine) = run.installation.engines.get(&run.plan.engine) {
        let scratch = engine.scratch_paths();
        let is_scratch = |path: &&RepoPath| scratch.iter().any(|s| path.as_bytes().starts_with(s.as_bytes()));
        ignored.extend(added.iter().filter(is_scratch).cloned());
    }
    Ok(ignored)
}

fn submodules(ground: &Ground) -> Vec<RepoPath> {
    let is_submodule = |e: &&TreeEntry| e.entry.mode == Mode::Submodule;
    ground.entries.iter().filter(is_submodule).map(|e| e.path.clone()).collect()
}

/// The name of the tree that the changes make of the baseline, by herma's own reckoning.
pub(crate) fn expected_tree(ground: &Ground, changes: &[ChangedFile]) -> String {
    let tree = changed(ground, changes);
    let entries: Vec<_> = tree.into_iter().collect();
    tree_id(ground.git_dir.format(), &entries)
}

/// The tree that the changes make of the baseline.
pub(crate) fn with_changes<'a>(
    ground: &'a Ground,
    changes: impl IntoIterator<Item = &'a ChangedFile>,
) -> Vec<TreeEntry> {
    let tree = changed(ground, changes).into_iter();
    tree.map(|(path, entry)| TreeEntry { path: path.clone(), entry: entry.clone() }).collect()
}

fn changed<'a>(
    ground: &'a Ground,
    changes: impl IntoIterator<Item = &'a ChangedFile>,
) -> BTreeMap<&'a RepoPath, &'a Entry> {
    let mut tree: BTreeMap<&RepoPath, &Entry> = ground.entries.iter().map(|e| (&e.path, &e.entry)).collect();
    for change in changes {
        match &change.new {
            Some(new) => tree.insert(&change.path, new),
            None => tree.remove(&change.path),
        };
    }
    tree
}
