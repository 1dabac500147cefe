//! herma's own walk over a work tree: beneath its root, through no symlink, without git.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use herma_core::report::{Entry, Mode};
use herma_core::{Digest, RepoPath};
use herma_rules::names::is_dot_git;
use rustix::fs::{Dir, FileType, OFlags};
use rustix::io::Errno;

use crate::beneath::{open, open_root};
use crate::error::GitError;
use crate::object::{ObjectFormat, blob_id};
use crate::parallel;
use crate::tree_entry::TreeEntry;

/// The result of a walk.
#[derive(Debug, Default)]
pub struct WalkResult {
    /// Every regular file and symlink, as git would record it, in order of path.
    pub entries: BTreeMap<RepoPath, Entry>,
    /// The size of each entry.
    pub sizes: BTreeMap<RepoPath, u64>,
    /// The target of each symlink.
    pub links: BTreeMap<RepoPath, Vec<u8>>,
    /// FIFOs, sockets and devices.
    pub specials: Vec<RepoPath>,
    /// Files that are too large to hash in reasonable time, such as sparse ones of a terabyte.
    pub oversized: Vec<RepoPath>,
    /// Files and directories of another owner that herma may not read.
    pub unreadable: Vec<RepoPath>,
    /// Files and directories below the root that some file system takes for `.git`. They are not entered.
    pub nested_repositories: Vec<RepoPath>,
    /// Directories with entries whose path is too long to open. Those entries are left out.
    pub too_deep: Vec<RepoPath>,
}

/// The longest path that the kernel opens.
const MAX_PATH_BYTES: usize = 4095;

/// Walks the tree below `root` and hashes every file. The root's own `.git` is left out.
///
/// A file that vanishes or changes its type during the walk is an error: every process that could write should be
/// dead.
pub fn walk(root: &Path, format: ObjectFormat) -> Result<WalkResult, GitError> {
    walk_with(root, format, &BTreeSet::new(), &|_, _| false)
}

/// The same without the files and links of `passed_over`, which are not hashed; a nested repository that holds one of them is passed
/// over too. A file that is larger than others may be is hashed if `is_known` finds that one of its path may have its size.
pub fn walk_with(
    root: &Path,
    format: ObjectFormat,
    passed_over: &BTreeSet<RepoPath>,
    is_known: &(dyn Fn(&RepoPath, u64) -> bool + Sync),
) -> Result<WalkResult, GitError> {
    let fail = |doing: &'static str| {
        move |e: Errno| GitError::File { doing, path: root.to_owned(), cause: e.into() }
    };
    let root_dir = open_root(root).map_err(fail("open"))?;
    let mut found = WalkResult::default();
    let mut files = Vec::new();
    list(&root_dir, root, &mut found, &mut files)?;
    files.retain(|(path, _)| !passed_over.contains(path));
    found.nested_repositories.retain(|directory| !holds_one(directory, passed_over));
    let hash = |(path, is_link): &(RepoPath, bool)| {
        hash_one((root_dir.as_fd(), root), format, path, *is_link, is_known)
    };
    for file in parallel::map(&files, hash)? {
        let entry = match file.content {
            HashedContent::Named(entry) => entry,
            HashedContent::TooLarge => {
                found.oversized.push(file.path);
                continue;
            }
            HashedContent::Unreadable => {
                found.unreadable.push(file.path);
                continue;
            }
        };
        found.sizes.insert(file.path.clone(), file.size);
        if let Some(target) = file.link {
            found.links.insert(file.path.clone(), target);
        }
        found.entries.insert(file.path, entry);
    }
    Ok(found)
}

fn holds_one(directory: &RepoPath, files: &BTreeSet<RepoPath>) -> bool {
    let is_below = |path: &RepoPath| {
        let rest = path.as_bytes().strip_prefix(directory.as_bytes());
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
    };
    files
        .range(directory..)
        .take_while(|path| path.as_bytes().starts_with(directory.as_bytes()))
        .any(is_below)
}

/// Lists everything below the root; regular files and symlinks go to `files`.
fn list(
    root_dir: &OwnedFd,
    root: &Path,
    found: &mut WalkResult,
    files: &mut Vec<(RepoPath, bool)>,
) -> Result<(), GitError> {
    let mut pending: Vec<Option<RepoPath>> = vec![None];
    while let Some(directory) = pending.pop() {
        let shown = || match &directory {
            None => root.to_owned(),
            Some(path) => root.join(path.to_string()),
        };
        let fail = |e: Errno| GitError::File { doing: "list", path: shown(), cause: e.into() };
        let name = directory.as_ref().map_or(&b"."[..], RepoPath::as_bytes);
        let fd = match (open(root_dir.as_fd(), name, OFlags::RDONLY | OFlags::DIRECTORY), &directory) {
            (Err(Errno::ACCESS | Errno::PERM | Errno::XDEV), Some(path)) => {
                found.unreadable.push(path.clone());
                continue;
            }
            (opened, _) => opened.map_err(fail)?,
        };
        let mut too_deep = false;
        for entry in Dir::new(fd).map_err(fail)? {
            let entry = entry.map_err(fail)?;
            let name = entry.file_name().to_bytes();
            if name == b"." || name == b".." || (directory.is_none() && name == b".git") {
                continue;
            }
            let mut bytes = directory.as_ref().map(|d| [d.as_bytes(), b"/"].concat()).unwrap_or_default();
            bytes.extend_from_slice(name);
            if bytes.len() > MAX_PATH_BYTES {
                too_deep = true;
                continue;
            }
            let Some(path) = RepoPath::new(bytes) else { continue };
            if is_dot_git(name) {
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
        found.too_deep.extend(directory.filter(|_| too_deep));
    }
    Ok(())
}

/// The type of an entry; some file systems do not include it in the listing.
fn kind(root_dir: &OwnedFd, path: &RepoPath, listed: FileType) -> rustix::io::Result<FileType> {
    if listed != FileType::Unknown {
        return Ok(listed);
    }
    let fd = open(root_dir.as_fd(), path.as_bytes(), OFlags::PATH | OFlags::NOFOLLOW)?;
    Ok(FileType::from_raw_mode(rustix::fs::fstat(fd)?.st_mode))
}

/// The largest file that is hashed.
const MAX_HASHED_BYTES: u64 = 1 << 30;
/// The format for ids that git never sees.
const FORMAT: ObjectFormat = ObjectFormat::Sha256;

/// One hashed file.
struct Hashed {
    path: RepoPath,
    content: HashedContent,
    size: u64,
    link: Option<Vec<u8>>,
}

/// The content of a file.
enum HashedContent {
    Named(Entry),
    TooLarge,
    Unreadable,
}

impl Hashed {
    /// The content's id, or a text that no content has.
    fn name(&self) -> String {
        match &self.content {
            HashedContent::Named(entry) => entry.id.clone(),
            HashedContent::TooLarge => format!("{} bytes", self.size),
            HashedContent::Unreadable => "unreadable".to_owned(),
        }
    }
}

fn hash_one(
    (root_dir, root): (BorrowedFd<'_>, &Path),
    format: ObjectFormat,
    path: &RepoPath,
    is_link: bool,
    is_known: &dyn Fn(&RepoPath, u64) -> bool,
) -> Result<Hashed, GitError> {
    let fail = |doing: &'static str| GitError::file(doing, root.join(path.to_string()));
    if is_link {
        let fd = open(root_dir, path.as_bytes(), OFlags::PATH | OFlags::NOFOLLOW)
            .map_err(|e| fail("open")(e.into()))?;
        let target = rustix::fs::readlinkat(&fd, c"", Vec::new())
            .map_err(|e| fail("read the link")(e.into()))?
            .into_bytes();
        let size = target.len() as u64;
        let id = blob_id(format, size, &target[..]).map_err(fail("read the link"))?;
        let content = HashedContent::Named(Entry { mode: Mode::Symlink, id });
        return Ok(Hashed { path: path.clone(), content, size, link: Some(target) });
    }
    let (file, size, mode) = match open_regular(root_dir, path) {
        Err(e) if e.kind() == std::io::ErrorKind::PermissionDenied => {
            return Ok(Hashed {
                path: path.clone(),
                content: HashedContent::Unreadable,
                size: 0,
                link: None,
            });
        }
        opened => opened.map_err(fail("open"))?,
    };
    let content = if size > MAX_HASHED_BYTES && !is_known(path, size) {
        HashedContent::TooLarge
    } else {
        HashedContent::Named(Entry { mode, id: blob_id(format, size, file).map_err(fail("read"))? })
    };
    Ok(Hashed { path: path.clone(), content, size, link: None })
}

/// Opens a regular file beneath the root without following links or blocking on a FIFO.
fn open_regular(root_dir: BorrowedFd<'_>, path: &RepoPath) -> std::io::Result<(File, u64, Mode)> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
    let fd = open(root_dir, path.as_bytes(), flags)?;
    let stat = rustix::fs::fstat(&fd)?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Err(std::io::Error::other("it was a regular file and is none now"));
    }
    let mode = if stat.st_mode & 0o100 == 0 { Mode::File } else { Mode::Executable };
    Ok((File::from(fd), u64::try_from(stat.st_size).unwrap_or(0), mode))
}

/// Whether an entry below the root, which had this size, matches the tree; an unreadable one does not.
pub(crate) fn holds(
    root_dir: BorrowedFd<'_>,
    root: &Path,
    format: ObjectFormat,
    expected: &TreeEntry,
    bytes: Option<u64>,
) -> bool {
    let TreeEntry { path, entry } = expected;
    let is_known = |_: &RepoPath, now: u64| Some(now) == bytes;
    matches!(
        hash_one((root_dir, root), format, path, entry.mode == Mode::Symlink, &is_known),
        Ok(Hashed { content: HashedContent::Named(found), .. }) if found == *entry
    )
}

/// The content of one entry of a walked tree, read the same way.
pub(crate) fn read_entry(root: &Path, path: &RepoPath, mode: Mode) -> Result<Vec<u8>, GitError> {
    let fail = |doing: &'static str| GitError::file(doing, root.join(path.to_string()));
    let root_dir = open_root(root).map_err(|e| fail("open")(e.into()))?;
    if mode == Mode::Symlink {
        let target = open(root_dir.as_fd(), path.as_bytes(), OFlags::PATH | OFlags::NOFOLLOW)
            .and_then(|fd| rustix::fs::readlinkat(&fd, c"", Vec::new()))
            .map_err(|e| fail("read the link")(e.into()))?;
        return Ok(target.into_bytes());
    }
    let (file, size, _) = open_regular(root_dir.as_fd(), path).map_err(fail("open"))?;
    let mut content = Vec::new();
    file.take(size.saturating_add(1)).read_to_end(&mut content).map_err(fail("read"))?;
    Ok(content)
}

/// The entries at and below `path`: a digest for each file and link, and the type of anything else. Empty if there
/// is nothing.
pub(crate) fn describe_below(root: &Path, path: &str) -> Result<Vec<(RepoPath, Digest)>, GitError> {
    let fail = |e: Errno| GitError::File { doing: "look at", path: root.join(path), cause: e.into() };
    let root_dir = open_root(root).map_err(fail)?;
    let mut described = Vec::new();
    let mut pending: Vec<RepoPath> = RepoPath::new(path).into_iter().collect();
    while let Some(path) = pending.pop() {
        let fd = match open(root_dir.as_fd(), path.as_bytes(), OFlags::PATH | OFlags::NOFOLLOW) {
            Ok(fd) => fd,
            Err(Errno::ACCESS | Errno::NAMETOOLONG) => {
                described.push((path, Digest::of(b"unreadable")));
                continue;
            }
            // It is missing, or a parent is a link or a file now.
            Err(Errno::NOENT | Errno::LOOP | Errno::NOTDIR) => continue,
            Err(e) => return Err(fail(e)),
        };
        let mode = rustix::fs::fstat(&fd).map_err(fail)?.st_mode;
        let digest = match FileType::from_raw_mode(mode) {
            FileType::Directory => match names_in(&root_dir, &path) {
                Err(Errno::ACCESS) => Digest::of(b"unreadable"),
                names => {
                    pending.extend(names.map_err(fail)?);
                    continue;
                }
            },
            FileType::RegularFile => {
                let hashed = hash_one((root_dir.as_fd(), root), FORMAT, &path, false, &|_, _| false)?;
                Digest::of(hashed.name().as_bytes())
            }
            FileType::Symlink => {
                Digest::of(&[b"link ", &read_entry(root, &path, Mode::Symlink)?[..]].concat())
            }
            _ => Digest::of(b"special"),
        };
        described.push((path, digest));
    }
    Ok(described)
}

fn names_in(root_dir: &OwnedFd, directory: &RepoPath) -> rustix::io::Result<Vec<RepoPath>> {
    let fd = open(root_dir.as_fd(), directory.as_bytes(), OFlags::RDONLY | OFlags::DIRECTORY)?;
    let mut paths = Vec::new();
    for entry in Dir::new(fd)? {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if name != b"." && name != b".." {
            paths.extend(RepoPath::new([directory.as_bytes(), b"/", name].concat()));
        }
    }
    Ok(paths)
}
