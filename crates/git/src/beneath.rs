//! Opens what lies beneath a root: through no symlink, and also where an agent took herma's permission away.

use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{FileType, Mode as Permissions, OFlags, ResolveFlags, openat2};
use rustix::io::{Errno, Result};

/// Nothing on the way may be a symlink, leave the root, or lie on another file system.
const RESOLVE: ResolveFlags = ResolveFlags::BENEATH
    .union(ResolveFlags::NO_SYMLINKS)
    .union(ResolveFlags::NO_MAGICLINKS)
    .union(ResolveFlags::NO_XDEV);

/// What herma needs of its own files and directories.
const FILE: u32 = 0o600;
const DIRECTORY: u32 = 0o700;

/// The root, to open things beneath it.
pub(crate) fn open_root(root: &Path) -> Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let root = rustix::fs::open(root, flags, Permissions::empty())?;
    // One that cannot be opened up says so when something is opened beneath it.
    let _ = allow(root.as_fd());
    Ok(root)
}

/// Opens a path beneath the root. An agent works as herma's own user, and may have taken the permissions away from what
/// it made; the owner can give them back.
pub(crate) fn open(root: BorrowedFd<'_>, path: &[u8], flags: OFlags) -> Result<OwnedFd> {
    let open = || openat2(root, path, flags | OFlags::CLOEXEC, Permissions::empty(), RESOLVE);
    match open() {
        Err(Errno::ACCESS) => {
            // Where that fails, what is opened next is refused again.
            let _ = allow_on_the_way(root, path);
            open()
        }
        opened => opened,
    }
}

/// Gives herma the permission to every directory on the way, and to what lies at its end.
fn allow_on_the_way(root: BorrowedFd<'_>, path: &[u8]) -> Result<()> {
    let steps = path.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(at, _)| at);
    for end in steps.chain([path.len()]) {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        allow(openat2(root, &path[..end], flags, Permissions::empty(), RESOLVE)?.as_fd())?;
    }
    Ok(())
}

/// Gives the owner of a file or directory the permission to read and write it. Other things stay as they are.
fn allow(fd: BorrowedFd<'_>) -> Result<()> {
    let mode = rustix::fs::fstat(fd)?.st_mode;
    let needed = match FileType::from_raw_mode(mode) {
        FileType::Directory => DIRECTORY,
        FileType::RegularFile => FILE,
        _ => return Ok(()),
    };
    if mode & needed == needed {
        return Ok(());
    }
    // What may not be opened can be changed only by a path. This one means the thing that is held, whatever its name
    // leads to by now.
    let held = format!("/proc/self/fd/{}", fd.as_raw_fd());
    rustix::fs::chmod(held, Permissions::from_raw_mode((mode & 0o7777) | needed))
}
