//! A run that starts from the kept workspace of an interrupted one: the files are read as an agent's result is read, and only what
//! git can record is taken over. The rules judge the whole difference from the base when the new run ends.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;

use herma_core::{Digest, RepoPath};
use herma_git::{TreeEntry, WalkResult, lay_out, walk_with};

use crate::collect::never_landing;
use crate::context::RunContext;
use crate::error::Stop;
use crate::order::KeptWorkspace;
use crate::tree_diff::{BaseTree, compare, expected_tree, take_refused_by_git};

/// The name of the file with ignore rules.
const IGNORE_FILE: &[u8] = b".gitignore";

/// The tree of a kept workspace.
pub(crate) struct KeptTree {
    pub(crate) tree: String,
    pub(crate) entries: Vec<TreeEntry>,
    /// The digest of its paths, modes and blob ids.
    pub(crate) digest: Digest,
}

/// Reads the kept workspace, or says why no run can start from it.
pub(crate) fn read(
    ctx: &RunContext<'_>,
    base: &BaseTree,
    kept: &KeptWorkspace,
) -> Result<Result<KeptTree, String>, Stop> {
    if kept.baseline_commit.as_ref() != Some(&base.baseline.commit) {
        return Ok(Err("the target's base is another one now".to_owned()));
    }
    let is_known = |path: &RepoPath, bytes: u64| base.has_file(path, bytes);
    let found = walk_with(&kept.directory, base.git_dir.format(), &BTreeSet::new(), &is_known)?;
    if let Some(why) = unrecordable(&found) {
        return Ok(Err(why));
    }
    let compared = compare(base, &found);
    let ignored = ignored(ctx, base, &compared.added)?;
    let mut changes = compared.without(&ignored, base);
    if let Some(path) = take_refused_by_git(&mut changes).first() {
        return Ok(Err(format!("git refuses to record `{}`", path.shortened())));
    }
    let result = base.git_dir.commit_changes(&base.baseline, &kept.directory, &changes)?;
    if expected_tree(base, &changes) != result.tree {
        return Ok(Err("it changed while it was read".to_owned()));
    }
    // The record of a removal is written before the first file is removed.
    let parent = ctx.order.resumes.as_ref().map(|resumed| resumed.run);
    if parent.is_some_and(|run| ctx.installation.home.discarded_at(run).is_some()) {
        return Ok(Err("it was discarded while it was read".to_owned()));
    }
    let entries = base.git_dir.entries(&result.tree)?;
    let digest = digest(&entries);
    Ok(Ok(KeptTree { tree: result.tree, entries, digest }))
}

/// The first thing in the workspace that no patch can hold.
fn unrecordable(found: &WalkResult) -> Option<String> {
    let kinds = [
        (&found.specials, "a FIFO, socket or device"),
        (&found.nested_repositories, "a nested repository"),
        (&found.oversized, "too large"),
        (&found.unreadable, "not readable"),
        (&found.too_deep, "too deep"),
    ];
    let mut first = kinds.into_iter().filter_map(|(paths, kind)| Some((paths.first()?, kind)));
    first.next().map(|(path, kind)| format!("`{}` in it is {kind}", path.shortened()))
}

/// The new files that the base's own ignore rules, the engine and the environment name as no part of a result.
fn ignored(ctx: &RunContext<'_>, base: &BaseTree, added: &[RepoPath]) -> Result<BTreeSet<RepoPath>, Stop> {
    let rules = |entry: &&TreeEntry| entry.path.name() == IGNORE_FILE;
    let rules: Vec<TreeEntry> = base.entries.iter().filter(rules).cloned().collect();
    let checkout = tempfile::tempdir_in(ctx.dirs.root())?;
    let place: &Path = checkout.path();
    lay_out(&base.git_dir, &rules, &[place])?;
    never_landing(ctx, base, added, place)
}

fn digest(entries: &[TreeEntry]) -> Digest {
    let mut text = String::new();
    for TreeEntry { path, entry } in entries {
        let _ = writeln!(text, "{} {} {path}", entry.mode.as_str(), entry.id);
    }
    Digest::of(text.as_bytes())
}
