//! The user inside a container, and the ownership of the job's directories.
//!
//! Docker has no user namespace by default, so the user inside is a user of this machine: herma's own, so that
//! herma can read the results. Root is never used inside: herma as root takes uid 1000, changes the owner of the
//! directories, and changes it back when the container is dead.

use std::collections::HashMap;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Dir, FileType, Gid, Mode, OFlags, Uid, chownat, openat, statat};

use crate::job::JobPaths;

/// The uid inside when herma runs as root.
const FALLBACK_UID: u32 = 1000;
/// The maximum depth; each level keeps one descriptor open.
const MAX_DEPTH: usize = 200;

/// A user of this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct User {
    pub(super) uid: u32,
    pub(super) gid: u32,
}

/// Directories that belong to the container's user until this is dropped, after the container is dead.
pub(super) struct ChownGuard {
    paths: Vec<PathBuf>,
}

impl User {
    /// The user inside a container.
    pub(super) fn inside() -> Self {
        let own = Self::own();
        match own {
            Self { uid: 0, .. } => Self { uid: FALLBACK_UID, gid: FALLBACK_UID },
            Self { uid, gid: 0 } => Self { uid, gid: uid },
            own => own,
        }
    }

    fn own() -> Self {
        Self { uid: rustix::process::geteuid().as_raw(), gid: rustix::process::getegid().as_raw() }
    }
}

/// Changes the owner of one file, if the container's user is not herma's own.
pub(super) fn chown_to_container_user(file: &Path) -> io::Result<()> {
    let (own, User { uid, gid }) = (User::own(), User::inside());
    if own.uid == uid {
        return Ok(());
    }
    let (uid, gid) = (Uid::from_raw(uid), Gid::from_raw(gid));
    Ok(chownat(CWD, file, Some(uid), Some(gid), AtFlags::SYMLINK_NOFOLLOW)?)
}

impl ChownGuard {
    /// Changes the owner of the directories, if the container's user is not herma's own. The sockets keep their new
    /// owner: several containers use them, and herma as root needs no permission.
    pub(super) fn chown(paths: &JobPaths) -> io::Result<Option<Self>> {
        if User::own().uid != 0 {
            return Ok(None);
        }
        let all: Vec<PathBuf> = [Some(&paths.workspace), paths.engine_dir.as_ref(), paths.home.as_ref()]
            .into_iter()
            .flatten()
            .cloned()
            .collect();
        for dir_path in &all {
            let mut links = HashMap::new();
            walk(dir_path, &mut |_, _, seen| {
                if FileType::from_raw_mode(seen.st_mode) != FileType::Directory && seen.st_nlink > 1 {
                    let left = links.entry((seen.st_dev, seen.st_ino)).or_insert(seen.st_nlink);
                    *left -= 1;
                }
                Ok(())
            })?;
            if links.values().any(|left| *left > 0) {
                let what = format!("a file in {} has another name outside of it", dir_path.display());
                return Err(io::Error::other(format!("{what}: a new owner would apply to that file too")));
            }
        }
        let chowned = Self { paths: all };
        chowned.chown_to(User::inside())?;
        for socket in [&paths.router, &paths.egress, &paths.governance].into_iter().flatten() {
            own(CWD, socket, User::inside())?;
        }
        Ok(Some(chowned))
    }

    fn chown_to(&self, user: User) -> io::Result<()> {
        for dir_path in &self.paths {
            own(CWD, dir_path, user)?;
            walk(dir_path, &mut |dir, name, _| own(dir, name, user))?;
        }
        Ok(())
    }
}

impl Drop for ChownGuard {
    fn drop(&mut self) {
        // Root, which herma then is, can still read files of the other owner.
        let _ = self.chown_to(User::own());
    }
}

/// Changes a symlink itself, not its target.
fn own(dir: impl std::os::fd::AsFd, name: impl rustix::path::Arg, user: User) -> io::Result<()> {
    let (uid, gid) = (Uid::from_raw(user.uid), Gid::from_raw(user.gid));
    Ok(chownat(dir, name, Some(uid), Some(gid), AtFlags::SYMLINK_NOFOLLOW)?)
}

type Visit<'a> = dyn FnMut(&OwnedFd, &std::ffi::CStr, &rustix::fs::Stat) -> io::Result<()> + 'a;

/// Visits every entry below a directory without following links.
fn walk(dir_path: &Path, visit: &mut Visit<'_>) -> io::Result<()> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let about = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", dir_path.display()));
    let dir = openat(CWD, dir_path, flags, Mode::empty()).map_err(|error| about(error.into()))?;
    below(&dir, MAX_DEPTH, visit).map_err(about)
}

fn below(dir: &OwnedFd, depth: usize, visit: &mut Visit<'_>) -> io::Result<()> {
    // Deeper entries keep their owner: the job would exceed another limit first.
    let Some(depth) = depth.checked_sub(1) else { return Ok(()) };
    for entry in Dir::read_from(dir)? {
        let entry = entry?;
        let name = entry.file_name();
        if matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }
        let seen = statat(dir, name, AtFlags::SYMLINK_NOFOLLOW)?;
        visit(dir, name, &seen)?;
        if FileType::from_raw_mode(seen.st_mode) == FileType::Directory {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            below(&openat(dir, name, flags, Mode::empty())?, depth, visit)?;
        }
    }
    Ok(())
}
