//! Checks that a repository has no symlinks where a landing writes: a link could redirect the writes.

use std::fs;
use std::io;
use std::path::Path;

/// The paths that a landing writes, or reads to find where to write. `reftable` is the ref storage of newer
/// repositories.
const LANDING_PATHS: [&str; 11] = [
    "HEAD",
    "config",
    "logs",
    "objects",
    "objects/pack",
    "packed-refs",
    "refs",
    "refs/heads",
    "refs/heads/herma",
    "refs/tags",
    "reftable",
];

/// Why a repository is not entirely at its path. The messages name paths inside the repository only.
#[derive(Debug, thiserror::Error)]
pub enum NotPlain {
    /// A link leads to the top directory.
    #[error("a symbolic link leads to it: admit the directory itself")]
    LinkedRoot,
    /// The status of `.git` could not be read.
    #[error("its `.git` cannot be looked at: {0}")]
    Unreadable(#[source] io::Error),
    /// `.git` is a link.
    #[error("its `.git` is a symbolic link")]
    LinkedGitDir,
    /// `.git` is a file.
    #[error("its `.git` is not a directory, as in a linked work tree: admit the main work tree")]
    LinkedWorkTree,
    /// There is a `commondir`.
    #[error("its `.git/commondir` leads to another repository")]
    CommonDir,
    /// The path of the git directory has a link in it.
    #[error("its git directory is a link, or a link leads to it")]
    LinkOnTheWay,
    /// A path that a landing writes is a link.
    #[error("its `.git/{0}` is a symbolic link")]
    LinkedPath(&'static str),
    /// The repository that was opened has its git directory at another path.
    #[error("its git directory is elsewhere: admit the main work tree")]
    Elsewhere,
}

/// Checks that the repository with the top directory `root` is entirely there: no link leads to it, its `.git` is a
/// directory, and no path that a landing writes is a link.
pub fn is_plain(root: &Path) -> Result<(), NotPlain> {
    if !is_real(root) {
        return Err(NotPlain::LinkedRoot);
    }
    let git_dir = root.join(".git");
    match fs::symlink_metadata(&git_dir) {
        Err(error) => return Err(NotPlain::Unreadable(error)),
        Ok(meta) if meta.is_symlink() => return Err(NotPlain::LinkedGitDir),
        Ok(meta) if !meta.is_dir() => return Err(NotPlain::LinkedWorkTree),
        Ok(_) => {}
    }
    if fs::symlink_metadata(git_dir.join("commondir")).is_ok() {
        return Err(NotPlain::CommonDir);
    }
    has_plain_paths(&git_dir)
}

/// Checks that no path below this git directory that a landing writes is a link.
pub(crate) fn has_plain_paths(git_dir: &Path) -> Result<(), NotPlain> {
    if !is_real(git_dir) {
        return Err(NotPlain::LinkOnTheWay);
    }
    // A missing path is created there.
    let is_link = |path: &&&str| fs::symlink_metadata(git_dir.join(path)).is_ok_and(|meta| meta.is_symlink());
    match LANDING_PATHS.iter().find(is_link) {
        Some(path) => Err(NotPlain::LinkedPath(path)),
        None => Ok(()),
    }
}

/// Whether the directory's path contains no link.
fn is_real(dir: &Path) -> bool {
    let is_dir = fs::symlink_metadata(dir).is_ok_and(|meta| meta.is_dir());
    is_dir && dir.canonicalize().is_ok_and(|real| real == dir)
}
