//! Whether a repository lies where it seems to lie. A link on the way would let a landing write somewhere else.

use std::fs;
use std::path::Path;

/// What a landing writes to, or reads to know where to write. `reftable` is where newer repositories keep their refs.
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

/// Whether the repository whose top directory is `root` lies there in full: no link leads to it, its `.git` is a
/// directory of its own, and nothing in it that a landing writes to is a link. The error says what is not so, by a
/// name inside the repository.
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

/// Whether nothing below this git directory that a landing writes to lies elsewhere.
pub(crate) fn has_plain_places(git_dir: &Path) -> Result<(), String> {
    if !is_real(git_dir) {
        return Err("its git directory is a link, or a link leads to it".to_owned());
    }
    for place in PLACES {
        // What is not there is made there.
        if fs::symlink_metadata(git_dir.join(place)).is_ok_and(|meta| meta.is_symlink()) {
            return Err(format!("its `.git/{place}` is a symbolic link"));
        }
    }
    Ok(())
}

/// Whether the directory is where its path says, through no link.
fn is_real(dir: &Path) -> bool {
    let is_dir = fs::symlink_metadata(dir).is_ok_and(|meta| meta.is_dir());
    is_dir && dir.canonicalize().is_ok_and(|real| real == dir)
}
