//! Writes a tree as files: the exact blobs, without filters, attributes or conversions.

use std::collections::BTreeSet;
use std::fs::{DirBuilder, OpenOptions};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use herma_core::RepoPath;
use herma_core::report::{ChangedFile, Mode};
use herma_rules::names::is_dot_git;

use crate::error::GitError;
use crate::git_dir::GitDir;
use crate::object::{ObjectFormat, blob_id};
use crate::parallel;
use crate::tree_entry::TreeEntry;
use crate::walk::read_entry;

/// Writes every file of `entries` below each of `roots`, where none of them may exist yet. Several checkouts of the
/// same tree cost one reading.
///
/// Directories come first and symlinks last, and nothing is ever opened that exists already, so no entry of a
/// crafted tree can be written through another one.
pub fn lay_out(git_dir: &GitDir, entries: &[TreeEntry], roots: &[&Path]) -> Result<(), GitError> {
    for root in roots {
        make_directories(entries, root)?;
    }
    let blobs: Vec<&TreeEntry> = entries.iter().filter(|e| e.entry.mode != Mode::Submodule).collect();
    // Each share has its own git process, so that reading and writing overlap.
    let shares: Vec<&[&TreeEntry]> = parallel::shares(&blobs).collect();
    let links = parallel::map_each(&shares, |share| write_share(git_dir, share, roots))?;
    for (entry, target) in links.iter().flatten() {
        for root in roots {
            let path = place(root, &entry.path);
            let target = std::ffi::OsStr::from_bytes(target);
            std::os::unix::fs::symlink(target, &path).map_err(GitError::file("make the link", path))?;
        }
    }
    Ok(())
}

/// Updates a checkout of the old tree to the new one, with the contents below `from`. Each must still have the id
/// under which it was collected.
pub fn copy_changes(
    from: &Path,
    format: ObjectFormat,
    changes: &[ChangedFile],
    root: &Path,
) -> Result<(), GitError> {
    remove_old(changes, root)?;
    let new = new_entries(changes);
    make_directories(&new, root)?;
    for entry in new.iter().filter(|e| e.entry.mode != Mode::Submodule) {
        let content = read_entry(from, &entry.path, entry.entry.mode)?;
        let path = place(root, &entry.path);
        let id =
            blob_id(format, content.len() as u64, &content[..]).map_err(GitError::file("hash", &path))?;
        if id != entry.entry.id {
            return Err(GitError::unexpected("collect", b"a file changed after it was collected"));
        }
        if entry.entry.mode == Mode::Symlink {
            let target = std::ffi::OsStr::from_bytes(&content);
            std::os::unix::fs::symlink(target, &path).map_err(GitError::file("make the link", path))?;
        } else {
            write_file(entry, &content, root)?;
        }
    }
    Ok(())
}

fn remove_old(changes: &[ChangedFile], root: &Path) -> Result<(), GitError> {
    let removable = |c: &&ChangedFile| c.old.as_ref().is_some_and(|old| old.mode != Mode::Submodule);
    for change in changes.iter().filter(removable) {
        let path = place(root, &change.path);
        std::fs::remove_file(&path).map_err(GitError::file("remove", &path))?;
        // git keeps no empty directories, and a new file may replace one.
        let mut parent = path.parent();
        while let Some(dir) = parent.filter(|dir| *dir != root && std::fs::remove_dir(dir).is_ok()) {
            parent = dir.parent();
        }
    }
    Ok(())
}

fn new_entries(changes: &[ChangedFile]) -> Vec<TreeEntry> {
    let new = |c: &ChangedFile| Some(TreeEntry { path: c.path.clone(), entry: c.new.clone()? });
    changes.iter().filter_map(new).collect()
}

/// Writes one share's files and returns its symlinks.
fn write_share<'a>(
    git_dir: &GitDir,
    share: &[&'a TreeEntry],
    roots: &[&Path],
) -> Result<Vec<(&'a TreeEntry, Vec<u8>)>, GitError> {
    let mut links = Vec::new();
    let mut wanted = share.iter();
    read_blobs(git_dir, share.iter().map(|e| e.entry.id.as_str()), |content| match wanted.next() {
        Some(entry) if entry.entry.mode == Mode::Symlink => {
            links.push((*entry, content));
            Ok(())
        }
        Some(entry) => roots.iter().try_for_each(|root| write_file(entry, &content, root)),
        None => Ok(()),
    })?;
    if wanted.next().is_some() {
        return Err(GitError::unexpected("cat-file", b"fewer blobs than were asked for"));
    }
    Ok(links)
}

/// The path of `path` below `root`.
fn place(root: &Path, path: &RepoPath) -> PathBuf {
    root.join(std::ffi::OsStr::from_bytes(path.as_bytes()))
}

fn make_directories(entries: &[TreeEntry], root: &Path) -> Result<(), GitError> {
    let mut directories = BTreeSet::new();
    for TreeEntry { path, entry } in entries {
        if path.components().any(is_dot_git) {
            return Err(GitError::unexpected("ls-tree", b"the tree has an entry named .git"));
        }
        if entry.mode == Mode::Submodule {
            directories.insert(path.clone());
        }
        let mut parent = path.parent();
        while let Some(directory) = parent {
            parent = directory.parent();
            if !directories.insert(directory) {
                break;
            }
        }
    }
    for directory in directories {
        let path = place(root, &directory);
        match DirBuilder::new().create(&path) {
            Err(e)
                if e.kind() == std::io::ErrorKind::AlreadyExists && !path.is_symlink() && path.is_dir() => {}
            made => made.map_err(GitError::file("make", path))?,
        }
    }
    Ok(())
}

fn write_file(entry: &TreeEntry, content: &[u8], root: &Path) -> Result<(), GitError> {
    let path = place(root, &entry.path);
    let mode = if entry.entry.mode == Mode::Executable { 0o755 } else { 0o644 };
    let written = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(mode)
        .open(&path)
        .and_then(|mut file| file.write_all(content));
    written.map_err(GitError::file("write", path))
}

/// Reads all blobs through one `git cat-file` and passes on each content, in order.
fn read_blobs<'a>(
    git_dir: &GitDir,
    ids: impl Iterator<Item = &'a str> + Send,
    mut take: impl FnMut(Vec<u8>) -> Result<(), GitError>,
) -> Result<(), GitError> {
    let fail = || GitError::file("read blobs from", git_dir.dir());
    let mut running = git_dir.git().call(git_dir.dir(), ["cat-file", "--batch", "--buffer"]).spawn()?;
    let stdin = running.take_stdin().ok_or_else(|| GitError::unexpected("cat-file", b"no stdin"))?;
    let (_, stdout) = running.streams();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let mut stdin = std::io::BufWriter::new(stdin);
            for id in ids {
                // The reader sees the end of the output and reports what is missing.
                if writeln!(stdin, "{id}").is_err() {
                    return;
                }
            }
            let _ = stdin.flush();
        });
        let mut stdout = BufReader::with_capacity(1 << 16, stdout);
        let mut head = String::new();
        loop {
            head.clear();
            if stdout.read_line(&mut head).map_err(fail())? == 0 {
                break;
            }
            let size = blob_size(&head).ok_or_else(|| GitError::unexpected("cat-file", head.as_bytes()))?;
            let mut content = vec![0; size];
            stdout.read_exact(&mut content).map_err(fail())?;
            stdout.read_exact(&mut [0]).map_err(fail())?;
            take(content)?;
        }
        Ok::<(), GitError>(())
    })?;
    running.finish()?;
    Ok(())
}

/// `<id> blob <size>\n`
fn blob_size(head: &str) -> Option<usize> {
    let mut words = head.trim_end().split(' ');
    (words.nth(1)? == "blob").then_some(())?;
    words.next()?.parse().ok()
}
