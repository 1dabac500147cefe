//! Removes what a run leaves, also what an agent made hard to remove. Whoever could change it meanwhile is dead.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

/// How deep a tree is looked into for directories that are removed at the same time.
const DEPTH: usize = 2;
/// With fewer of them a thread costs more than it saves.
const WORTH_IT: usize = 16;

pub(super) fn remove_any(path: &Path) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Ok(meta) if meta.is_dir() => remove_tree(path),
        Ok(_) => fs::remove_file(path),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(e) => Err(e),
    }
}

/// Removes a tree that an agent may have made hard to remove: directories without write permission.
pub(crate) fn remove_tree(dir: &Path) -> io::Result<()> {
    remove_most(dir);
    match fs::remove_dir_all(dir) {
        Ok(()) => Ok(()),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(e) if e.kind() == io::ErrorKind::PermissionDenied => {
            open_up(dir)?;
            fs::remove_dir_all(dir)
        }
        Err(e) => Err(e),
    }
}

/// Removes what it can of a large tree on every core. What cannot be removed is left to whoever removes the rest and says why.
fn remove_most(dir: &Path) {
    let mut parts = Vec::new();
    list_directories(dir, DEPTH, &mut parts);
    if parts.len() < WORTH_IT {
        return;
    }
    let next = AtomicUsize::new(0);
    let remove = || {
        while let Some(part) = parts.get(next.fetch_add(1, Ordering::Relaxed)) {
            let _ = fs::remove_dir_all(part);
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(remove);
        }
        remove();
    });
}

/// The directories that lie so deep below this one.
fn list_directories(dir: &Path, depth: usize, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        // `file_type` does not follow symlinks, so this never leaves the tree.
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            match depth {
                0 | 1 => found.push(entry.path()),
                _ => list_directories(&entry.path(), depth - 1, found),
            }
        }
    }
}

fn open_up(dir: &Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(dir, fs::Permissions::from_mode(0o700))?;
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        // `file_type` does not follow symlinks, so this never leaves the tree.
        if entry.file_type()?.is_dir() {
            open_up(&entry.path())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_tree_goes_and_what_its_links_lead_to_stays() {
        let scratch = tempfile::tempdir().unwrap();
        let (tree, outside) = (scratch.path().join("tree"), scratch.path().join("outside"));
        fs::create_dir_all(outside.join("kept")).unwrap();
        fs::write(outside.join("kept/file"), "kept").unwrap();
        for n in 0..WORTH_IT {
            let below = tree.join(format!("src/{n}/deeper"));
            fs::create_dir_all(&below).unwrap();
            fs::write(below.join("file"), "gone").unwrap();
            std::os::unix::fs::symlink(&outside, tree.join(format!("src/link-{n}"))).unwrap();
        }
        std::os::unix::fs::symlink(&outside, tree.join("link")).unwrap();
        remove_tree(&tree).unwrap();
        assert!(!tree.exists());
        assert_eq!(fs::read_to_string(outside.join("kept/file")).unwrap(), "kept");
    }
}
