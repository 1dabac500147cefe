//! The workspace of an interrupted run is kept where the agent changed files and no patch has them.

use std::collections::BTreeSet;

use herma_core::{Event, EventType};
use herma_evidence::{Bundle, layout};
use herma_git::{GitDir, GitError, ObjectFormat, walk_with};
use herma_home::RunDirs;

use crate::installation::Installation;
use crate::order::Plan;
use crate::results::RunResults;

/// Whether the workspace has work that would be lost with it. A workspace that cannot be compared counts as changed.
pub(crate) fn has_unsaved_work(
    installation: &Installation,
    (plan, dirs): (&Plan, &RunDirs),
    (bundle, results): (&Bundle, &RunResults),
    events: &[Event],
) -> bool {
    let has_patch = results.collected.is_some() && bundle.artifacts().contains_key(layout::PATCH);
    // A child works for its parent, and is not resumed. A kill can come between the engine's start and its event.
    if has_patch || plan.depth > 0 || !dirs.workspace().is_dir() {
        return false;
    }
    start_tree(events).is_some_and(|tree| is_changed(installation, dirs, &tree).unwrap_or(true))
}

/// The tree that the workspace started with.
fn start_tree(events: &[Event]) -> Option<String> {
    let prepared = events.iter().find(|event| event.kind == EventType::WorkspacePrepared)?;
    let resumed = prepared.data.get("resumed").and_then(|resumed| resumed.get("start_tree"));
    let tree = resumed.filter(|tree| tree.is_string()).or_else(|| prepared.data.get("baseline_tree"))?;
    Some(tree.as_str()?.to_owned())
}

fn is_changed(installation: &Installation, dirs: &RunDirs, tree: &str) -> Result<bool, GitError> {
    let format = ObjectFormat::of_id(tree);
    let git_dir = GitDir::open(&installation.git, &dirs.git(), format);
    let expected = git_dir.entries(tree)?;
    let found = walk_with(&dirs.workspace(), format, &BTreeSet::new(), &|_, _| false)?;
    let others = [&found.specials, &found.oversized, &found.unreadable, &found.nested_repositories];
    let same = found.entries.iter().eq(expected.iter().map(|there| (&there.path, &there.entry)));
    Ok(!same || others.iter().any(|paths| !paths.is_empty()) || !found.too_deep.is_empty())
}
