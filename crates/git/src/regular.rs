//! Reads files of another user's git directory without blocking: a FIFO would block herma, or git, for ever.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use herma_core::Digest;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use sha2::{Digest as _, Sha256};

use crate::error::GitError;

/// The largest file that is read. The index of a repository with millions of files is smaller.
const MAX_BYTES: u64 = 1 << 30;
/// Directories with many files that git does not read for herma's commands.
const UNREAD: [&str; 4] = ["annex", "hooks", "lfs", "rr-cache"];
/// Objects may be large; git maps them instead of reading them.
const LARGE: [&str; 2] = ["modules", "objects"];
/// Work tree files that git reads before it checks their type.
const RULES: [&str; 3] = [".gitattributes", ".gitignore", ".gitmodules"];

/// The digest of a regular file; `None` if it does not exist. It follows no link and blocks on no FIFO.
pub(crate) fn digest(path: &Path) -> Result<Option<Digest>, GitError> {
    let fail = |cause| GitError::file("read", path)(cause);
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let mut file = match rustix::fs::open(path, flags, Mode::empty()) {
        Ok(fd) => File::from(fd),
        Err(Errno::NOENT) => return Ok(None),
        Err(Errno::LOOP) => return Err(fail(io::Error::other("it is a symbolic link"))),
        // A socket cannot be opened.
        Err(Errno::NXIO) => return Err(fail(irregular())),
        Err(e) => return Err(fail(e.into())),
    };
    let meta = file.metadata().map_err(fail)?;
    if !meta.is_file() {
        return Err(fail(irregular()));
    }
    if meta.len() > MAX_BYTES {
        return Err(fail(too_large()));
    }
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 1 << 16];
    let mut left = MAX_BYTES;
    loop {
        let read = file.read(&mut buffer).map_err(fail)?;
        if read == 0 {
            return Ok(Some(Digest::from_bytes(hash.finalize().into())));
        }
        // The file may grow while it is read.
        left = left.checked_sub(read as u64).ok_or_else(|| fail(too_large()))?;
        hash.update(&buffer[..read]);
    }
}

/// Rejects a repository in which git would block for ever or read for hours: with a FIFO, a device or a huge file
/// among its own files. A socket cannot be opened, so it does not block; git itself creates one.
pub(crate) fn check_openable(root: &Path) -> Result<(), GitError> {
    for name in RULES {
        check_file(&root.join(name), true)?;
    }
    for git_dir in git_dirs(root)? {
        check_below(&git_dir, &git_dir)?;
    }
    Ok(())
}

fn check_below(dir: &Path, top: &Path) -> Result<(), GitError> {
    let fail = || GitError::file("list", dir);
    let entries = match fs::read_dir(dir) {
        // git reports a path that is no directory.
        Err(e) if matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => return Ok(()),
        entries => entries.map_err(fail())?,
    };
    for entry in entries {
        let entry = entry.map_err(fail())?;
        let (path, kind) = (entry.path(), entry.file_type().map_err(fail())?);
        let below = |names: &[&str]| {
            path.strip_prefix(top).is_ok_and(|inside| names.iter().any(|name| inside.starts_with(name)))
        };
        let large = below(&LARGE);
        if kind.is_dir() {
            if !below(&UNREAD) {
                check_below(&path, top)?;
            }
        } else if !(large && kind.is_file()) {
            check_file(&path, !large)?;
        }
    }
    Ok(())
}

fn check_file(path: &Path, limited: bool) -> Result<(), GitError> {
    use std::os::unix::fs::FileTypeExt as _;
    // A file that vanished was a lock.
    let Ok(meta) = fs::symlink_metadata(path) else { return Ok(()) };
    let kind = meta.file_type();
    if kind.is_fifo() || kind.is_char_device() || kind.is_block_device() {
        return Err(GitError::file("read", path)(irregular()));
    }
    if limited && meta.is_file() && meta.len() > MAX_BYTES {
        return Err(GitError::file("read", path)(too_large()));
    }
    Ok(())
}

/// The git directory of a work tree, and the one that it shares with others. Dangling ones are left out: git
/// reports them.
fn git_dirs(root: &Path) -> Result<Vec<PathBuf>, GitError> {
    let named = root.join(".git");
    check_file(&named, true)?;
    let own = match pointer(&named, "gitdir: ") {
        Some(elsewhere) => root.join(elsewhere),
        None => named,
    };
    check_file(&own.join("commondir"), true)?;
    let shared = pointer(&own.join("commondir"), "").map(|shared| own.join(shared));
    // A link at the top is followed, as git does.
    Ok([Some(own), shared].into_iter().flatten().filter_map(|dir| dir.canonicalize().ok()).collect())
}

/// The path in a small file after `prefix`.
fn pointer(file: &Path, prefix: &str) -> Option<PathBuf> {
    const MAX_POINTER_BYTES: u64 = 1 << 16;
    fs::metadata(file).ok().filter(|meta| meta.is_file() && meta.len() <= MAX_POINTER_BYTES)?;
    let text = fs::read_to_string(file).ok()?;
    Some(PathBuf::from(text.strip_prefix(prefix)?.trim_end_matches(['\n', '\r'])))
}

fn irregular() -> io::Error {
    io::Error::other("it is not a regular file; remove it from the repository")
}

fn too_large() -> io::Error {
    io::Error::other("it is larger than a gigabyte")
}
