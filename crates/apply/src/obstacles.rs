//! Obstacles of a patch: files of the person that it would overwrite.

use std::collections::BTreeSet;
use std::io;

use herma_core::RepoPath;
use herma_rules::names::is_dot_git;

use crate::files::{Found, WorkTree};
use crate::journal::FileChange;

/// Every path that is in the way, with the reason. Files of the work tree must be exactly those of the base, without a filter or a
/// conversion of line endings between them, and nothing may have the name of a new file.
pub(crate) fn obstacles(
    tree: &WorkTree,
    files: &[FileChange],
    staged: &BTreeSet<RepoPath>,
) -> io::Result<Vec<(RepoPath, String)>> {
    let removed: BTreeSet<&RepoPath> =
        files.iter().filter(|file| file.after.is_none()).map(|file| &file.path).collect();
    let mut found = Vec::new();
    for file in files {
        if let Some(why) = obstacle(tree, file, staged, &removed)? {
            found.push((file.path.clone(), why));
        }
    }
    Ok(found)
}

fn obstacle(
    tree: &WorkTree,
    file: &FileChange,
    staged: &BTreeSet<RepoPath>,
    removed: &BTreeSet<&RepoPath>,
) -> io::Result<Option<String>> {
    let path = &file.path;
    // The path rules of a run forbid it, and a mistake there must not reach a person's hooks.
    if path.components().any(is_dot_git) {
        return Ok(Some("it is part of git's own directory".to_owned()));
    }
    if let Some(directory) = git_directory_above(tree, path)? {
        return Ok(Some(format!("`{}` is a directory of git itself", directory.shortened())));
    }
    if staged.contains(path) {
        return Ok(Some("it has staged changes".to_owned()));
    }
    let state = tree.state(path)?;
    if state.is(file.before.as_ref()) {
        return Ok(None);
    }
    Ok(match (&file.before, &state) {
        (Some(_), Found::File(_)) => Some(
            "it has local changes, or a filter or line-ending conversion of this repository changes it"
                .to_owned(),
        ),
        (None, Found::File(_)) => Some("an untracked file has this name".to_owned()),
        (None, Found::Directory) => other_file(tree, path, removed)?
            .map(|other| format!("the untracked `{}` is in its place", other.shortened())),
        // A file that becomes a directory is itself removed by the patch.
        (None, Found::Unreachable) if is_below_removed(path, removed) => None,
        (_, other) => Some(other.in_words().to_owned()),
    })
}

/// A directory above the path that git takes for one of its own, whatever its name: a new file in it can be a hook.
fn git_directory_above(tree: &WorkTree, path: &RepoPath) -> io::Result<Option<RepoPath>> {
    let mut parent = path.parent();
    while let Some(directory) = parent {
        if is_git_directory(tree, &directory)? {
            return Ok(Some(directory));
        }
        parent = directory.parent();
    }
    Ok(None)
}

/// Whether the directory has what git looks for in a repository.
fn is_git_directory(tree: &WorkTree, directory: &RepoPath) -> io::Result<bool> {
    let has = |name: &[u8]| match RepoPath::new([directory.as_bytes(), b"/", name].concat()) {
        None => Ok(false),
        Some(path) => tree.state(&path).map(|state| !matches!(state, Found::Nothing | Found::Unreachable)),
    };
    Ok(has(b"HEAD")? && ((has(b"objects")? && has(b"refs")?) || has(b"commondir")?))
}

fn is_below_removed(path: &RepoPath, removed: &BTreeSet<&RepoPath>) -> bool {
    let mut parent = path.parent();
    while let Some(directory) = parent {
        if removed.contains(&directory) {
            return true;
        }
        parent = directory.parent();
    }
    false
}

/// A file below the directory that is none of these.
pub(crate) fn other_file(
    tree: &WorkTree,
    directory: &RepoPath,
    known: &BTreeSet<&RepoPath>,
) -> io::Result<Option<RepoPath>> {
    for name in tree.names(directory)? {
        let Some(path) = RepoPath::new([directory.as_bytes(), b"/", &name].concat()) else {
            return Ok(Some(directory.clone()));
        };
        let other = match tree.state(&path)? {
            Found::Directory => other_file(tree, &path, known)?,
            _ => Some(path).filter(|path| !known.contains(path)),
        };
        if other.is_some() {
            return Ok(other);
        }
    }
    Ok(None)
}
