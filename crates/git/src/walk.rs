//! herma's own walk over a work tree: beneath its root, through no symlink, without git.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use herma_model::RepoPath;
use herma_model::report::{Entry, Mode};
use rustix::fs::{Dir, FileType, Mode as Permissions, OFlags, ResolveFlags, openat2};

use crate::error::GitError;
use crate::object::{ObjectFormat, blob_id};
use crate::parallel;

/// What a walk found.
#[derive(Debug, Default)]
pub struct Found {
    /// Every regular file and symlink, as git would record it, in order of path.
    pub entries: BTreeMap<RepoPath, Entry>,
    /// The size of each entry.
    pub sizes: BTreeMap<RepoPath, u64>,
    /// Where each symlink points.
    pub links: BTreeMap<RepoPath, Vec<u8>>,
    /// FIFOs, sockets and devices.
    pub specials: Vec<RepoPath>,
    /// Files and directories named `.git` below the root, in any spelling of case. They are not entered.
    pub nested_repositories: Vec<RepoPath>,
}

/// Nothing on the way may be a symlink, leave the root, or lie on another file system.
const RESOLVE: ResolveFlags = ResolveFlags::BENEATH
    .union(ResolveFlags::NO_SYMLINKS)
    .union(ResolveFlags::NO_MAGICLINKS)
    .union(ResolveFlags::NO_XDEV);

/// Walks the tree below `root` and hashes every file. The root's own `.git` is left out.
///
/// A file that vanishes or changes its kind during the walk is an error: whoever changes the tree now should be dead.
pub fn walk(root: &Path, format: ObjectFormat) -> Result<Found, GitError> {
    let fail = |doing: &'static str| {
        move |e: rustix::io::Errno| GitError::File { doing, path: root.to_owned(), cause: e.into() }
    };
    let flags = OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let root_dir = rustix::fs::open(root, flags, Permissions::empty()).map_err(fail("open"))?;
    let mut found = Found::default();
    let mut files = Vec::new();
    list(&root_dir, root, &mut found, &mut files)?;
    let hash = |(path, is_link): &(RepoPath, bool)| hash_one(root_dir.as_fd(), root, format, path, *is_link);
    for file in parallel::map(&files, hash)? {
        found.sizes.insert(file.path.clone(), file.size);
        if let Some(target) = file.link {
            found.links.insert(file.path.clone(), target);
        }
        found.entries.insert(file.path, file.entry);
    }
    Ok(found)
}

/// Lists everything below the root; regular files and symlinks go to `files`.
fn list(
    root_dir: &OwnedFd,
    root: &Path,
    found: &mut Found,
    files: &mut Vec<(RepoPath, bool)>,
) -> Result<(), GitError> {
    let mut pending: Vec<Option<RepoPath>> = vec![None];
    while let Some(directory) = pending.pop() {
        let shown = || match &directory {
            None => root.to_owned(),
            Some(path) => root.join(path.to_string()),
        };
        let fail = |e: rustix::io::Errno| GitError::File { doing: "list", path: shown(), cause: e.into() };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let name = directory.as_ref().map_or(&b"."[..], RepoPath::as_bytes);
        let fd = openat2(root_dir, name, flags, Permissions::empty(), RESOLVE).map_err(fail)?;
        for entry in Dir::new(fd).map_err(fail)? {
            let entry = entry.map_err(fail)?;
            let name = entry.file_name().to_bytes();
            if name == b"." || name == b".." || (directory.is_none() && name == b".git") {
                continue;
            }
            let mut bytes = directory.as_ref().map(|d| [d.as_bytes(), b"/"].concat()).unwrap_or_default();
            bytes.extend_from_slice(name);
            let Some(path) = RepoPath::new(bytes) else { continue };
            if name.eq_ignore_ascii_case(b".git") {
                found.nested_repositories.push(path);
                continue;
            }
            match kind(root_dir, &path, entry.file_type()).map_err(fail)? {
                FileType::Directory => pending.push(Some(path)),
                FileType::RegularFile => files.push((path, false)),
                FileType::Symlink => files.push((path, true)),
                _ => found.specials.push(path),
            }
        }
    }
    Ok(())
}

/// The kind of an entry; some file systems do not say it in the listing.
fn kind(root_dir: &OwnedFd, path: &RepoPath, listed: FileType) -> rustix::io::Result<FileType> {
    if listed != FileType::Unknown {
        return Ok(listed);
    }
    let fd =
        openat2(root_dir, path.as_bytes(), OFlags::PATH | OFlags::NOFOLLOW, Permissions::empty(), RESOLVE)?;
    Ok(FileType::from_raw_mode(rustix::fs::fstat(fd)?.st_mode))
}

/// One hashed file.
struct Hashed {
    path: RepoPath,
    entry: Entry,
    size: u64,
    link: Option<Vec<u8>>,
}

fn hash_one(
    root_dir: BorrowedFd<'_>,
    root: &Path,
    format: ObjectFormat,
    path: &RepoPath,
    is_link: bool,
) -> Result<Hashed, GitError> {
    let fail = |doing: &'static str| GitError::file(doing, root.join(path.to_string()));
    if is_link {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fd = openat2(root_dir, path.as_bytes(), flags, Permissions::empty(), RESOLVE)
            .map_err(|e| fail("open")(e.into()))?;
        let target = rustix::fs::readlinkat(&fd, c"", Vec::new())
            .map_err(|e| fail("read the link")(e.into()))?
            .into_bytes();
        let size = target.len() as u64;
        let id = blob_id(format, size, &target[..]).map_err(fail("read the link"))?;
        let entry = Entry { mode: Mode::Symlink, id };
        return Ok(Hashed { path: path.clone(), entry, size, link: Some(target) });
    }
    let (file, size, mode) = open_regular(root_dir, path).map_err(fail("open"))?;
    let id = blob_id(format, size, file).map_err(fail("read"))?;
    Ok(Hashed { path: path.clone(), entry: Entry { mode, id }, size, link: None })
}

/// Opens a regular file beneath the root without following anything and without waiting for a FIFO's other end.
fn open_regular(root_dir: BorrowedFd<'_>, path: &RepoPath) -> std::io::Result<(File, u64, Mode)> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
    let fd = openat2(root_dir, path.as_bytes(), flags, Permissions::empty(), RESOLVE)?;
    let stat = rustix::fs::fstat(&fd)?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Err(std::io::Error::other("it was a regular file and is none now"));
    }
    let mode = if stat.st_mode & 0o100 == 0 { Mode::File } else { Mode::Executable };
    Ok((File::from(fd), u64::try_from(stat.st_size).unwrap_or(0), mode))
}

/// The content of one entry of a walked tree, read the same careful way.
pub(crate) fn read_entry(root: &Path, path: &RepoPath, mode: Mode) -> Result<Vec<u8>, GitError> {
    let fail = |doing: &'static str| GitError::file(doing, root.join(path.to_string()));
    let flags = OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let root_dir = rustix::fs::open(root, flags, Permissions::empty()).map_err(|e| fail("open")(e.into()))?;
    if mode == Mode::Symlink {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let target = openat2(&root_dir, path.as_bytes(), flags, Permissions::empty(), RESOLVE)
            .and_then(|fd| rustix::fs::readlinkat(&fd, c"", Vec::new()))
            .map_err(|e| fail("read the link")(e.into()))?;
        return Ok(target.into_bytes());
    }
    let (file, size, _) = open_regular(root_dir.as_fd(), path).map_err(fail("open"))?;
    let mut content = Vec::new();
    file.take(size.saturating_add(1)).read_to_end(&mut content).map_err(fail("read"))?;
    Ok(content)
}
