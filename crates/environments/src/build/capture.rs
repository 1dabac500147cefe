//! Moves the untracked files of a checkout into a layer: those that git ignores, and those that `cache` names.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;

use herma_core::RepoPath;
use herma_core::environment::{CachePattern, EnvironmentDefinition};
use herma_git::{TreeEntry, lay_out};

use super::BaseTree;
use super::error::BuildError;
use crate::inputs::{RootPatterns, ignore_rules};
use crate::layers::{TreeCounter, TreeError, TreeLimits, make_writable};

/// How many files that are not captured are named.
const MAX_LEFT_OUT: usize = 100;

/// A checkout in which commands ran. No process that could write there is alive.
pub(super) struct Captured<'a> {
    pub(super) base: BaseTree<'a>,
    pub(super) definition: &'a EnvironmentDefinition,
    /// The entries of the base that the checkout was made of.
    pub(super) laid_out: &'a [TreeEntry],
    /// The checkout.
    pub(super) work: &'a Path,
    /// An empty directory.
    pub(super) ignore_root: &'a Path,
}

/// Moves captured files to `into`, and returns the first of the others.
///
/// The result depends on the laid out entries, the definition and the ignore rules alone, because the layer is shared by every base
/// that has the same ones. The ignore rules come from a directory with nothing but the base's own `.gitignore` files: commands
/// wrote into the checkout.
pub(super) fn capture(
    from: &Captured<'_>,
    into: &Path,
    limits: &TreeLimits<'_>,
) -> Result<Vec<RepoPath>, BuildError> {
    let Captured { base, definition, laid_out, work, ignore_root } = from;
    let rules = ignore_rules(base.entries);
    lay_out(base.git_dir, &rules, &[ignore_root])?;
    let laid_out = base.git_dir.checked_out(laid_out);
    let tracked: BTreeSet<&RepoPath> = laid_out.iter().map(|entry| &entry.path).collect();
    let mut untracked = list(work, limits)?;
    untracked.retain(|path| !tracked.contains(path));
    let ignored = base.git_dir.ignored(ignore_root, &rules, &untracked)?;
    let cache = RootPatterns::new(definition.cache.iter().map(CachePattern::as_str));
    let of_base: BTreeSet<&RepoPath> = base.entries.iter().map(|entry| &entry.path).collect();
    let mut left_out = Vec::new();
    for path in untracked {
        limits.check()?;
        if ignored.contains(&path) || cache.matches(&path) {
            move_file(work, into, &path)?;
        } else if left_out.len() < MAX_LEFT_OUT && !of_base.contains(&path) {
            left_out.push(path);
        }
    }
    Ok(left_out)
}

/// Every file and link below a directory, without following links. Sockets, pipes and devices are passed over, and so is the
/// checkout's own `.git`. Directories become writable, so that files can be moved out of them.
fn list(root: &Path, limits: &TreeLimits<'_>) -> Result<Vec<RepoPath>, TreeError> {
    let counter = TreeCounter::new(*limits);
    let mut found = Vec::new();
    let mut pending = vec![root.to_owned()];
    while let Some(dir) = pending.pop() {
        make_writable(&dir)?;
        for entry in fs::read_dir(&dir)? {
            let entry = entry?;
            let (path, kind) = (entry.path(), entry.file_type()?);
            let below = path.strip_prefix(root).map_err(io::Error::other)?;
            if below == Path::new(".git") {
                continue;
            }
            counter.add_entry(below.as_os_str().len(), || Path::new("checkout").join(below))?;
            if kind.is_dir() {
                pending.push(path);
            } else if kind.is_file() || kind.is_symlink() {
                found.extend(RepoPath::new(below.as_os_str().as_bytes()));
            }
        }
    }
    found.sort();
    Ok(found)
}

fn move_file(work: &Path, into: &Path, path: &RepoPath) -> io::Result<()> {
    let below = Path::new(OsStr::from_bytes(path.as_bytes()));
    let target = into.join(below);
    match fs::rename(work.join(below), &target) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => {
            let parent = target.parent().unwrap_or(into);
            DirBuilder::new().recursive(true).mode(0o755).create(parent)?;
            fs::rename(work.join(below), &target)
        }
        moved => moved,
    }
}
