//! Removes the directories of a run, also those that an agent made hard to remove. No process of the run is alive.

use std::ffi::CStr;
use std::fs;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use rustix::fs::{AtFlags, Dir, DirEntry, FileType, Mode, OFlags, SeekFrom};
use rustix::io::Errno;

/// How deep a tree is looked into for directories that are removed at the same time.
const DEPTH: usize = 2;
/// With fewer of them a thread costs more than it saves.
const WORTH_IT: usize = 16;
/// How many directories are open at once. Deeper ones are first moved up: an agent can nest them deeper than the stack, a
/// path or the number of open files allows.
const MAX_OPEN: usize = 64;

pub(crate) fn remove_any(path: &Path) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Ok(meta) if meta.is_dir() => remove_tree(path),
        Ok(_) => fs::remove_file(path),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(e) => Err(e),
    }
}

/// Removes a tree that an agent may have made hard to remove: directories without permissions, or nested very deep.
pub fn remove_tree(dir: &Path) -> io::Result<()> {
    remove_most(dir);
    remove_all(dir)
}

/// Removes most of a large tree on every core. `remove_all` removes the rest and reports errors.
fn remove_most(dir: &Path) {
    let mut parts = Vec::new();
    list_directories(dir, DEPTH, &mut parts);
    if parts.len() < WORTH_IT {
        return;
    }
    let next = AtomicUsize::new(0);
    let remove = || {
        while let Some(part) = parts.get(next.fetch_add(1, Ordering::Relaxed)) {
            let _ = remove_all(part);
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(remove);
        }
        remove();
    });
}

/// The directories at this depth below this one.
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

/// Removes a directory with everything in it; one that is not there is removed already.
fn remove_all(dir: &Path) -> io::Result<()> {
    let open = || rustix::fs::open(dir, OPEN, Mode::empty());
    let top = match open() {
        Err(Errno::NOENT) => return Ok(()),
        Err(Errno::ACCESS) => {
            rustix::fs::chmod(dir, Mode::RWXU)?;
            open()?
        }
        opened => opened?,
    };
    let mut lifted = Lifted { top: top.as_fd(), next: 0 };
    loop {
        let before = lifted.next;
        // The position of a listing belongs to the open file, which the duplicate shares.
        rustix::fs::seek(&top, SeekFrom::Start(0))?;
        clear(top.try_clone()?, MAX_OPEN, &mut lifted)?;
        // A listing need not show entries that were moved there while it was read.
        if lifted.next == before {
            break;
        }
    }
    fs::remove_dir(dir)
}

/// No link is followed.
const OPEN: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// The directory that too deeply nested directories are moved to.
struct Lifted<'a> {
    top: BorrowedFd<'a>,
    next: u64,
}

impl Lifted<'_> {
    /// Moves a directory to the top, under a name that nothing has there.
    fn lift(&mut self, dir: BorrowedFd<'_>, name: &CStr) -> rustix::io::Result<()> {
        loop {
            let free = format!("lifted-{}", self.next);
            self.next += 1;
            match permitted(dir, name, || rustix::fs::renameat(dir, name, self.top, &*free)) {
                Err(Errno::EXIST | Errno::NOTEMPTY | Errno::NOTDIR) => {}
                moved => return moved,
            }
        }
    }
}

/// Removes everything in a directory.
fn clear(dir: OwnedFd, may_open: usize, lifted: &mut Lifted<'_>) -> io::Result<()> {
    let mut listing = Dir::new(dir)?;
    while let Some(entry) = listing.read() {
        let (entry, dir) = (entry?, listing.fd()?);
        let name = entry.file_name();
        if matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }
        if !is_directory(dir, &entry)? {
            permitted(dir, name, || rustix::fs::unlinkat(dir, name, AtFlags::empty()))?;
        } else if may_open == 0 {
            lifted.lift(dir, name)?;
        } else {
            let below = permitted(dir, name, || rustix::fs::openat(dir, name, OPEN, Mode::empty()))?;
            clear(below, may_open - 1, lifted)?;
            permitted(dir, name, || rustix::fs::unlinkat(dir, name, AtFlags::REMOVEDIR))?;
        }
    }
    Ok(())
}

/// Some file systems do not report the type of an entry in a listing.
fn is_directory(dir: BorrowedFd<'_>, entry: &DirEntry) -> rustix::io::Result<bool> {
    let kind = match entry.file_type() {
        FileType::Unknown => {
            let stat = rustix::fs::statat(dir, entry.file_name(), AtFlags::SYMLINK_NOFOLLOW)?;
            FileType::from_raw_mode(stat.st_mode)
        }
        listed => listed,
    };
    Ok(kind == FileType::Directory)
}

/// Does something to an entry of a directory, with the permissions for it given back where an agent took them away.
fn permitted<T>(
    dir: BorrowedFd<'_>,
    name: &CStr,
    act: impl Fn() -> rustix::io::Result<T>,
) -> rustix::io::Result<T> {
    match act() {
        Err(Errno::ACCESS) => {
            // If that fails, the second attempt returns the reason.
            let _ = rustix::fs::fchmod(dir, Mode::RWXU);
            let is_dir = rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW)
                .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Directory);
            if is_dir {
                let _ = rustix::fs::chmodat(dir, name, Mode::RWXU, AtFlags::empty());
            }
            act()
        }
        done => done,
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

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

    /// Makes directories below one another, the first of them with a link and a directory beside the next.
    fn nest(top: &Path, levels: usize) {
        let mut at = rustix::fs::open(top, OPEN, Mode::empty()).unwrap();
        for level in 0..levels {
            rustix::fs::mkdirat(&at, "a", Mode::RWXU).unwrap();
            if level < 4 * MAX_OPEN {
                rustix::fs::mkdirat(&at, "b", Mode::RWXU).unwrap();
                rustix::fs::symlinkat("/", &at, "link").unwrap();
            }
            at = rustix::fs::openat(&at, "a", OPEN, Mode::empty()).unwrap();
        }
        rustix::fs::openat(&at, "file", OFlags::CREATE | OFlags::WRONLY, Mode::RUSR).unwrap();
    }

    #[test]
    fn a_tree_that_is_deeper_than_a_path_and_than_open_files_goes() {
        let scratch = tempfile::tempdir().unwrap();
        let tree = scratch.path().join("tree");
        // A name that a moved directory would get is taken.
        fs::create_dir_all(tree.join("lifted-0/x")).unwrap();
        nest(&tree, 25_000);
        remove_tree(&tree).unwrap();
        assert!(!tree.exists());
    }

    #[test]
    fn directories_without_permissions_go() {
        let scratch = tempfile::tempdir().unwrap();
        let tree = scratch.path().join("tree");
        fs::create_dir_all(tree.join("a/b/c")).unwrap();
        fs::write(tree.join("a/b/file"), "").unwrap();
        for closed in ["a/b/c", "a/b", "a", ""] {
            fs::set_permissions(tree.join(closed), fs::Permissions::from_mode(0o000)).unwrap();
        }
        remove_tree(&tree).unwrap();
        assert!(!tree.exists());
    }
}
