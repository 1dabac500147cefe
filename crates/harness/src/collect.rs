//! The collect step: herma walks the workspace itself, after every process of the agent is dead.

use std::collections::BTreeSet;
use std::path::Path;

use herma_core::RepoPath;
use herma_core::event::PatchApplied;
use herma_core::report::ChangedFile;
use herma_environments::inputs::cached;
use herma_evidence::Redactor;
use herma_git::{ControlFiles, walk_with};
use herma_rules::TreeFacts;
use herma_rules::VerificationFiles;
use herma_rules::test_files::looks_like_test;
use serde::{Deserialize, Serialize};

use crate::context::RunContext;
use crate::error::Stop;
use crate::journal::StepResult;
use crate::tree_diff::{BaseTree, compare, expected_tree, submodules, take_refused_by_git};

/// The result of the engine's work.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Collected {
    pub(crate) result_tree: String,
    pub(crate) result_commit: String,
    pub(crate) changed_files: Vec<ChangedFile>,
    pub(crate) changed_tests: Vec<RepoPath>,
    /// Changed files that decide what verification does, and are no tests.
    pub(crate) changed_verification_files: Vec<RepoPath>,
    pub(crate) ignored_files: Vec<RepoPath>,
    /// The location of a secret in a name, as text.
    pub(crate) secret: Option<String>,
}

impl StepResult for Collected {
    const KEY: &'static str = "collected";
}

/// Walks the workspace, records the result as one commit, and returns it with the input of the path rules. Files of the environment
/// are not the agent's.
pub(crate) fn collect(
    ctx: &RunContext<'_>,
    base: &BaseTree,
    control_files: &ControlFiles,
    not_of_the_agent: Option<&BTreeSet<RepoPath>>,
) -> Result<(Collected, TreeFacts), Stop> {
    let workspace = ctx.dirs.workspace();
    let git_control_files = ControlFiles::read(&workspace)?.changed_since(control_files);
    let nothing = BTreeSet::new();
    let passed_over = not_of_the_agent.unwrap_or(&nothing);
    let is_known = |path: &RepoPath, bytes: u64| base.has_file(path, bytes);
    let found = walk_with(&workspace, base.git_dir.format(), passed_over, &is_known)?;
    let compared = compare(base, &found);
    let ignored = never_landing(ctx, base, &compared.added, &ctx.dirs.verification())?;
    let mut changes = compared.without(&ignored, base);
    let refused_by_git = take_refused_by_git(&mut changes);

    let result = base.git_dir.commit_changes(&base.baseline, &workspace, &changes)?;
    // The tree that lands is the tree that was hashed.
    if expected_tree(base, &changes) != result.tree {
        return Err(Stop::internal("the workspace changed while it was collected"));
    }

    let touched: Vec<&RepoPath> = changes.iter().map(|change| &change.path).collect();
    let lfs_files = base.git_dir.kept_by_lfs(&touched)?;
    let tree = TreeFacts {
        lfs_files,
        changes,
        paths: found.entries.into_keys().collect(),
        links: found.links,
        sizes: found.sizes,
        ignored: ignored.into_iter().collect(),
        oversized: found.oversized,
        unreadable: found.unreadable,
        special_files: found.specials,
        nested_repositories: found.nested_repositories,
        submodules: submodules(base),
        too_deep: found.too_deep,
        refused_by_git,
        git_control_files,
    };
    let redactor = ctx.events.redactor();
    let deciding = VerificationFiles::of(&ctx.contract.terms.verify);
    let paths = || tree.changes.iter().map(|change| change.path.clone());
    let collected = Collected {
        result_tree: result.tree.clone(),
        result_commit: result.commit.clone(),
        changed_files: tree.changes.clone(),
        changed_tests: paths().filter(looks_like_test).collect(),
        changed_verification_files: tree
            .changes
            .iter()
            .filter(|change| deciding.decides(change))
            .map(|change| change.path.clone())
            .collect(),
        ignored_files: tree.ignored.clone(),
        secret: secret_in_the_patch(&tree, &redactor).or_else(|| secret_beside_the_patch(&tree, &redactor)),
    };
    ctx.journal.append(&collected)?;
    ctx.record(PatchApplied {
        result_tree: result.tree,
        result_commit: result.commit,
        changed: tree.changes.len(),
    })?;
    Ok((collected, tree))
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

/// New files that never land: those that the baseline's ignore rules, which `checkout` has, cover, the engine's scratch paths, and those that the
/// contract's environment names as its own.
pub(crate) fn never_landing(
    ctx: &RunContext<'_>,
    base: &BaseTree,
    added: &[RepoPath],
    checkout: &Path,
) -> Result<BTreeSet<RepoPath>, Stop> {
    let mut ignored = base.git_dir.ignored(checkout, &base.entries, added)?;
    if let Some(engine) = ctx.installation.engines.get(&ctx.plan.engine) {
        let scratch = engine.scratch_paths();
        let is_scratch = |path: &&RepoPath| scratch.iter().any(|s| path.as_bytes().starts_with(s.as_bytes()));
        ignored.extend(added.iter().filter(is_scratch).cloned());
    }
    if let Some(definition) = &ctx.contract.terms.environment {
        ignored.extend(cached(definition, added).cloned());
    }
    Ok(ignored)
}
