//! Checks that a repository has no symlinks where a landing writes: a link could redirect the writes.

use std::fs;
use std::path::Path;

/// The paths that a landing writes, or reads to find where to write. `reftable` is the ref storage of newer
/// repositories.
const PLACES: [&str; 11] = [
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

/// Checks that the repository with the top directory `root` is entirely there: no link leads to it, its `.git` is a
/// directory, and no path that a landing writes is a link. The error names a path inside the repository.
pub fn is_plain(root: &Path) -> Result<(), String> {
    if !is_real(root) {
        return Err("a symbolic link leads to it: admit the directory itself".to_owned());
    }
    let git_dir = root.join(".git");
    match fs::symlink_metadata(&git_dir) {
        Err(e) => return Err(format!("its `.git` cannot be looked at: {e}")),
        Ok(meta) if meta.is_symlink() => return Err("its `.git` is a symbolic link".to_owned()),
        Ok(meta) if !meta.is_dir() => {
            return Err("its `.git` is not a directory, as in a linked work tree: admit the main work tree"
                .to_owned());
        }
        Ok(_) => {}
    }
    if fs::symlink_metadata(git_dir.join("commondir")).is_ok() {
        return Err("its `.git/commondir` leads to another repository".to_owned());
    }
    has_plain_places(&git_dir)
}

/// Checks that no path below this git directory that a landing writes is a link.
pub(crate) fn has_plain_places(git_dir: &Path) -> Result<(), String> {
    if !is_real(git_dir) {
        return Err("its git directory is a link, or a link leads to it".to_owned());
    }
    for place in PLACES {
        // A missing path is created there.
        if fs::symlink_metadata(git_dir.join(place)).is_ok_and(|meta| meta.is_symlink()) {
            return Err(format!("its `.git/{place}` is a symbolic link"));
        }
    }
    Ok(())
}

/// Whether the directory's path contains no link.
fn is_real(dir: &Path) -> bool {
    let is_dir = fs::symlink_metadata(dir).is_ok_and(|meta| meta.is_dir());
    is_dir && dir.canonicalize().is_ok_and(|real| real == dir)
}
