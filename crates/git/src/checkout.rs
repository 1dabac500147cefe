//! Writes a tree as files: the exact blobs, without filters, attributes or conversions.

use std::collections::BTreeSet;
use std::fs::{DirBuilder, File, OpenOptions};
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

/// A larger blob is not read into memory.
const MAX_SMALL_BYTES: usize = 1 << 20;
/// git streams objects that are larger, where they are no deltas.
pub(crate) const BIG_FILE: &str = "core.bigFileThreshold=4m";
/// How many files are written between two reports.
const FILES_PER_REPORT: usize = 1_000;

/// Writes every file of `entries` below each of `roots`, where none of them may exist yet. Several checkouts of the
/// same tree cost one reading.
///
/// Directories come first and symlinks last, and nothing is ever opened that exists already, so no entry of a
/// crafted tree can be written through another one.
pub fn lay_out(git_dir: &GitDir, entries: &[TreeEntry], roots: &[&Path]) -> Result<(), GitError> {
    lay_out_watched(git_dir, entries, roots, &|_| {})
}

/// The same, and tells `wrote` of every 1,000 files how many were written since it was called last. It is called on several threads.
pub fn lay_out_watched(
    git_dir: &GitDir,
    entries: &[TreeEntry],
    roots: &[&Path],
    wrote: &(dyn Fn(usize) + Sync),
) -> Result<(), GitError> {
    for root in roots {
        make_directories(entries, root)?;
    }
    let content = &git_dir.content;
    for entry in entries {
        if let Some(file) = content.lfs_file(entry) {
            roots.iter().try_for_each(|root| copy_file(entry, &file.copy, root))?;
        }
        if let Some(submodule) = content.submodule(entry) {
            let below: Vec<PathBuf> = roots.iter().map(|root| place(root, &entry.path)).collect();
            let below: Vec<&Path> = below.iter().map(PathBuf::as_path).collect();
            lay_out_watched(&submodule.git_dir, &submodule.entries, &below, wrote)?;
        }
    }
    let is_blob =
        |entry: &&TreeEntry| entry.entry.mode != Mode::Submodule && content.lfs_file(entry).is_none();
    let blobs: Vec<&TreeEntry> = entries.iter().filter(is_blob).collect();
    // Each share has its own git process, so that reading and writing overlap.
    let shares: Vec<&[&TreeEntry]> = parallel::shares(&blobs).collect();
    let links = parallel::map_each(&shares, |share| write_share(git_dir, share, roots, wrote))?;
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
    wrote: &(dyn Fn(usize) + Sync),
) -> Result<Vec<(&'a TreeEntry, Vec<u8>)>, GitError> {
    let mut links = Vec::new();
    let (mut wanted, mut written) = (share.iter(), 0);
    read_blobs(git_dir, share.iter().map(|e| e.entry.id.as_str()), |blob| {
        let Some(entry) = wanted.next() else { return Ok(()) };
        written += 1;
        if written % FILES_PER_REPORT == 0 {
            wrote(FILES_PER_REPORT);
        }
        match blob {
            Blob::Small(content) if entry.entry.mode == Mode::Symlink => {
                links.push((*entry, content.to_vec()));
                Ok(())
            }
            Blob::Small(content) => roots.iter().try_for_each(|root| write_file(entry, content, root)),
            Blob::Large(_) if entry.entry.mode == Mode::Symlink => {
                Err(GitError::unexpected("cat-file", b"a symbolic link with a target of megabytes"))
            }
            Blob::Large(content) => write_large(entry, content, roots),
        }
    })?;
    if wanted.next().is_some() {
        return Err(GitError::unexpected("cat-file", b"fewer blobs than were asked for"));
    }
    wrote(written % FILES_PER_REPORT);
    Ok(links)
}

/// Copies a large blob to all roots in pieces.
fn write_large(entry: &TreeEntry, content: &mut dyn Read, roots: &[&Path]) -> Result<(), GitError> {
    let open = |root: &&Path| {
        let path = place(root, &entry.path);
        let file = new_file(entry, &path).map_err(GitError::file("write", &path))?;
        Ok::<_, GitError>((file, path))
    };
    let mut files = roots.iter().map(open).collect::<Result<Vec<_>, _>>()?;
    let mut buffer = vec![0; 1 << 18];
    loop {
        let n = content
            .read(&mut buffer)
            .map_err(GitError::file("read blobs for", place(Path::new(""), &entry.path)))?;
        if n == 0 {
            return Ok(());
        }
        for (file, path) in &mut files {
            file.write_all(&buffer[..n]).map_err(GitError::file("write", &*path))?;
        }
    }
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

fn copy_file(entry: &TreeEntry, from: &Path, root: &Path) -> Result<(), GitError> {
    let path = place(root, &entry.path);
    let copied = File::open(from).and_then(|mut from| std::io::copy(&mut from, &mut new_file(entry, &path)?));
    copied.map(drop).map_err(GitError::file("write", path))
}

fn new_file(entry: &TreeEntry, path: &Path) -> std::io::Result<File> {
    let mode = if entry.entry.mode == Mode::Executable { 0o755 } else { 0o644 };
    OpenOptions::new().write(true).create_new(true).mode(mode).open(path)
}

fn write_file(entry: &TreeEntry, content: &[u8], root: &Path) -> Result<(), GitError> {
    let path = place(root, &entry.path);
    let written = new_file(entry, &path).and_then(|mut file| file.write_all(content));
    written.map_err(GitError::file("write", path))
}

/// The content of a blob.
pub(crate) enum Blob<'a> {
    Small(&'a [u8]),
    /// It is not read into memory.
    Large(&'a mut dyn Read),
}

/// Reads all blobs through one `git cat-file` and passes on each content, in order.
pub(crate) fn read_blobs<'a>(
    git_dir: &GitDir,
    ids: impl Iterator<Item = &'a str> + Send,
    mut take: impl FnMut(Blob<'_>) -> Result<(), GitError>,
) -> Result<(), GitError> {
    let fail = || GitError::file("read blobs from", git_dir.dir());
    let args = ["-c", BIG_FILE, "cat-file", "--batch", "--buffer"];
    let mut running = git_dir.git().call(git_dir.dir(), args).spawn()?;
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
        let (mut head, mut content) = (String::new(), Vec::new());
        loop {
            head.clear();
            if stdout.read_line(&mut head).map_err(fail())? == 0 {
                break;
            }
            let size = blob_size(&head).ok_or_else(|| GitError::unexpected("cat-file", head.as_bytes()))?;
            if size <= MAX_SMALL_BYTES {
                content.resize(size, 0);
                stdout.read_exact(&mut content).map_err(fail())?;
                take(Blob::Small(&content))?;
            } else {
                let mut rest = (&mut stdout).take(size as u64);
                take(Blob::Large(&mut rest))?;
                let left = rest.limit();
                if left > 0 && std::io::copy(&mut rest, &mut std::io::sink()).map_err(fail())? != left {
                    return Err(GitError::unexpected("cat-file", b"a blob is shorter than it says"));
                }
            }
            stdout.read_exact(&mut [0]).map_err(fail())?;
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
