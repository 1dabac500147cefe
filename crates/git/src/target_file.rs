//! Reads a file of the target's work tree: through no link, and without blocking.

use std::fs::File;
use std::io::{self, Read as _, Write};
use std::path::Path;

use herma_core::{Digest, RepoPath};
use rustix::fs::{FileType, Mode, OFlags, ResolveFlags, openat2};
use sha2::{Digest as _, Sha256};

use crate::object::{BlobHash, ObjectFormat};

/// A regular file of the work tree, and its size. `None` if there is none.
pub(crate) fn open(root: &Path, path: &RepoPath) -> Option<(File, u64)> {
    let directory = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let root = rustix::fs::open(root, directory, Mode::empty()).ok()?;
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    let fd = openat2(root, path.as_bytes(), flags, Mode::empty(), resolve).ok()?;
    let stat = rustix::fs::fstat(&fd).ok()?;
    let is_file = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
    is_file.then(|| (File::from(fd), u64::try_from(stat.st_size).unwrap_or(0)))
}

/// Copies `bytes` bytes, and returns the digest of the content and its id as a blob. Fails if the file has another size.
pub(crate) fn copy(
    from: File,
    bytes: u64,
    format: ObjectFormat,
    mut to: impl Write,
) -> io::Result<(Digest, String)> {
    let mut from = from.take(bytes.saturating_add(1));
    let (mut digest, mut blob) = (Sha256::new(), BlobHash::new(format, bytes));
    let mut buffer = vec![0; 1 << 16];
    let mut seen = 0;
    loop {
        let n = from.read(&mut buffer)?;
        if n == 0 {
            break;
        }
        seen += n as u64;
        digest.update(&buffer[..n]);
        blob.update(&buffer[..n]);
        to.write_all(&buffer[..n])?;
    }
    if seen != bytes {
        return Err(io::Error::other("it changed while it was read"));
    }
    Ok((Digest::from_bytes(digest.finalize().into()), blob.finish()))
}
