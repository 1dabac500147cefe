//! Opens paths beneath a root without following symlinks, also where an agent removed herma's permissions.

use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{FileType, Mode as Permissions, OFlags, ResolveFlags, openat2};
use rustix::io::{Errno, Result};

/// No component may be a symlink, leave the root, or be on another file system.
const RESOLVE: ResolveFlags = ResolveFlags::BENEATH
    .union(ResolveFlags::NO_SYMLINKS)
    .union(ResolveFlags::NO_MAGICLINKS)
    .union(ResolveFlags::NO_XDEV);

/// The permissions that herma needs on its own files and directories.
const FILE: u32 = 0o600;
const DIRECTORY: u32 = 0o700;

/// The root directory as a descriptor.
pub(crate) fn open_root(root: &Path) -> Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let root = rustix::fs::open(root, flags, Permissions::empty())?;
    // A failure shows when a path beneath it is opened.
    let _ = allow(root.as_fd());
    Ok(root)
}

/// Opens a path beneath the root. An agent works as herma's own user and may have removed permissions; the owner
/// can restore them.
pub(crate) fn open(root: BorrowedFd<'_>, path: &[u8], flags: OFlags) -> Result<OwnedFd> {
    let open = || openat2(root, path, flags | OFlags::CLOEXEC, Permissions::empty(), RESOLVE);
    match open() {
        Err(Errno::ACCESS) => {
            // If that fails, the next open is denied again.
            let _ = allow_on_the_way(root, path);
            open()
        }
        opened => opened,
    }
}

/// Restores herma's permissions on every directory of the path, and on its last component.
fn allow_on_the_way(root: BorrowedFd<'_>, path: &[u8]) -> Result<()> {
    let steps = path.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(at, _)| at);
    for end in steps.chain([path.len()]) {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        allow(openat2(root, &path[..end], flags, Permissions::empty(), RESOLVE)?.as_fd())?;
    }
    Ok(())
}

/// Gives the owner of a file or directory read and write permission. Other file types are unchanged.
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
    // An O_PATH descriptor can only be changed by a path. This one refers to the open file, whatever its name
    // refers to by now.
    let held = format!("/proc/self/fd/{}", fd.as_raw_fd());
    rustix::fs::chmod(held, Permissions::from_raw_mode((mode & 0o7777) | needed))
}
