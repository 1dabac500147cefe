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
use crate::inputs::RootPatterns;

/// How many files that are not captured are named.
const MAX_LEFT_OUT: usize = 100;

/// Moves captured files from `work` to `into`, and returns the first of the others. No process that could write there is alive.
///
/// The ignore rules come from a directory with nothing but the base's own `.gitignore` files: commands wrote into `work`.
pub(super) fn capture(
    base: BaseTree<'_>,
    definition: &EnvironmentDefinition,
    tracked: &BTreeSet<&RepoPath>,
    work: &Path,
    ignore_root: &Path,
    into: &Path,
) -> Result<Vec<RepoPath>, BuildError> {
    let rules: Vec<TreeEntry> =
        base.entries.iter().filter(|entry| entry.path.name() == b".gitignore").cloned().collect();
    lay_out(base.git_dir, &rules, &[ignore_root])?;
    let untracked: Vec<RepoPath> = list(work)?.into_iter().filter(|path| !tracked.contains(path)).collect();
    let ignored = base.git_dir.ignored(ignore_root, base.entries, &untracked)?;
    let cache = RootPatterns::new(definition.cache.iter().map(CachePattern::as_str));
    let mut left_out = Vec::new();
    for path in untracked {
        if ignored.contains(&path) || cache.matches(&path) {
            move_file(work, into, &path)?;
        } else if left_out.len() < MAX_LEFT_OUT {
            left_out.push(path);
        }
    }
    Ok(left_out)
}

/// Every file and link below a directory, without following links. Sockets, pipes and devices are passed over.
fn list(root: &Path) -> io::Result<Vec<RepoPath>> {
    let mut found = Vec::new();
    let mut pending = vec![root.to_owned()];
    while let Some(dir) = pending.pop() {
        for entry in fs::read_dir(&dir)? {
            let entry = entry?;
            let (path, kind) = (entry.path(), entry.file_type()?);
            if kind.is_dir() {
                pending.push(path);
            } else if kind.is_file() || kind.is_symlink() {
                let below = path.strip_prefix(root).map_err(io::Error::other)?;
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
