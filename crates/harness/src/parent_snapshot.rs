//! The base tree of a child run: its parent's workspace as it is at that moment, read by herma's own walk.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::Path;

use herma_core::report::Mode;
use herma_git::{Baseline, GitDir, GitError, ObjectFormat, walk};

use crate::installation::Installation;
use crate::parent_run::ParentRun;
use crate::tree_diff::{BaseTree, GivenHistory, compare, expected_tree, take_refused_by_git};

/// Where a git directory names those that it reads from.
const ALTERNATES: &str = "objects/info/alternates";

/// Makes the child's git directory, with the workspace of its parent in it as one parentless commit.
///
/// The parent's agent is alive, and may change its files meanwhile. Nothing is followed out of the workspace, and what is
/// recorded is what was hashed; else there is no child.
pub(crate) fn baseline(
    installation: &Installation,
    dir: &Path,
    parent: &ParentRun,
) -> Result<(GitDir, Baseline), GitError> {
    let unfit = |why: &str| GitError::File {
        doing: "take up",
        path: "the workspace of the parent".into(),
        cause: std::io::Error::other(why.to_owned()),
    };
    let format = ObjectFormat::of_id(&parent.base_tree);
    let git_dir = GitDir::create(&installation.git, dir, format, Some(&parent.git.join("objects")))?;
    read_from_all(dir, &parent.git)?;
    let base = git_dir.adopt(&parent.base_tree)?;
    let git_dir = git_dir.with_content_of(&parent.content);
    let entries = git_dir.entries(&base.tree)?;
    let found = walk(&parent.workspace, format)?;
    if !found.specials.is_empty() || !found.nested_repositories.is_empty() || !found.oversized.is_empty() {
        return Err(unfit("it holds a FIFO, a socket, a device, a repository, or a file that is too large"));
    }
    if let Some(path) = found.unreadable.first() {
        return Err(unfit(&format!("herma may not read `{path}` in it")));
    }
    if let Some(path) = found.too_deep.first() {
        return Err(unfit(&format!("`{}` in it holds a path that is too long", path.shortened())));
    }
    let base_tree =
        BaseTree { git_dir, baseline: base, entries, missing: Vec::new(), history: GivenHistory::None };
    let compared = compare(&base_tree, &found);
    let mut ignored = base_tree.git_dir.ignored(&parent.checkout, &base_tree.entries, &compared.added)?;
    let is_scratch = |path: &&herma_core::RepoPath| {
        parent.scratch.iter().any(|scratch| path.as_bytes().starts_with(scratch.as_bytes()))
    };
    ignored.extend(compared.added.iter().filter(is_scratch).cloned());
    let mut changes = compared.without(&ignored, &base_tree);
    if let Some(path) = take_refused_by_git(&mut changes).first() {
        return Err(unfit(&format!("git refuses a symbolic link of the name `{}` in it", path.shortened())));
    }
    if changes.iter().filter_map(|change| change.new.as_ref()).any(|new| new.mode == Mode::Submodule) {
        return Err(unfit("it changes a submodule"));
    }
    let now = base_tree.git_dir.commit_changes(&base_tree.baseline, &parent.workspace, &changes)?;
    if expected_tree(&base_tree, &changes) != now.tree {
        return Err(unfit("it changed while it was read"));
    }
    let baseline = base_tree.git_dir.adopt(&now.tree)?;
    Ok((base_tree.git_dir, baseline))
}

/// Names those that the parent reads from as well: git follows only so many one after the other.
fn read_from_all(dir: &Path, parent: &Path) -> Result<(), GitError> {
    let file = dir.join(ALTERNATES);
    let more = fs::read(parent.join(ALTERNATES)).unwrap_or_default();
    OpenOptions::new()
        .append(true)
        .open(&file)
        .and_then(|mut list| list.write_all(&more))
        .map_err(|cause| GitError::File { doing: "write", path: file, cause })
}
