//! Who the processes in a container are, and whose the rooms are meanwhile.
//!
//! Docker has no user namespace of its own by default, so the user inside is a user of this machine. It is the one
//! that herma runs as: what it writes then belongs to who reads it. Only root is never taken inside. A herma that runs
//! as root takes user 1000 instead, lends the rooms to that user, and takes them back when the container is dead.

use std::collections::HashMap;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Dir, FileType, Gid, Mode, OFlags, Uid, chownat, openat, statat};

use crate::job::JobPaths;

/// Who stands in for root.
const STAND_IN: u32 = 1000;
/// Nobody nests directories deeper than this; each level keeps one file open.
const DEEPEST: usize = 200;

/// A user of this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct User {
    pub(super) uid: u32,
    pub(super) gid: u32,
}

/// Rooms that belong to another user until this is dropped, once nobody is left who could write in them.
pub(super) struct Lent {
    paths: Vec<PathBuf>,
}

impl User {
    /// Who the processes in a container are.
    pub(super) fn inside() -> Self {
        let own = Self::own();
        match own {
            Self { uid: 0, .. } => Self { uid: STAND_IN, gid: STAND_IN },
            Self { uid, gid: 0 } => Self { uid, gid: uid },
            own => own,
        }
    }

    fn own() -> Self {
        Self { uid: rustix::process::geteuid().as_raw(), gid: rustix::process::getegid().as_raw() }
    }
}

/// Gives one file to who will be inside, where that is not herma's own user.
pub(super) fn give(file: &Path) -> io::Result<()> {
    let (own, User { uid, gid }) = (User::own(), User::inside());
    if own.uid == uid {
        return Ok(());
    }
    let (uid, gid) = (Uid::from_raw(uid), Gid::from_raw(gid));
    Ok(chownat(CWD, file, Some(uid), Some(gid), AtFlags::SYMLINK_NOFOLLOW)?)
}

impl Lent {
    /// Lends the rooms to who will be inside, where that is not herma's own user. The sockets are lent for good: they
    /// are the run's own, several containers call them, and herma as root needs no permission.
    pub(super) fn lend(paths: &JobPaths) -> io::Result<Option<Self>> {
        if User::own().uid != 0 {
            return Ok(None);
        }
        let all: Vec<PathBuf> =
            [Some(&paths.workspace), paths.engine_dir.as_ref()].into_iter().flatten().cloned().collect();
        for room in &all {
            let mut links = HashMap::new();
            walk(room, &mut |_, _, seen| {
                if FileType::from_raw_mode(seen.st_mode) != FileType::Directory && seen.st_nlink > 1 {
                    let left = links.entry((seen.st_dev, seen.st_ino)).or_insert(seen.st_nlink);
                    *left -= 1;
                }
                Ok(())
            })?;
            if links.values().any(|left| *left > 0) {
                let what = format!("a file in {} has another name outside of it", room.display());
                return Err(io::Error::other(format!("{what}: lending it would lend what is not the run's")));
            }
        }
        let lent = Self { paths: all };
        lent.hand_to(User::inside())?;
        for socket in [&paths.router, &paths.egress, &paths.governance].into_iter().flatten() {
            own(CWD, socket, User::inside())?;
        }
        Ok(Some(lent))
    }

    fn hand_to(&self, user: User) -> io::Result<()> {
        for room in &self.paths {
            own(CWD, room, user)?;
            walk(room, &mut |dir, name, _| own(dir, name, user))?;
        }
        Ok(())
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        // What stays another's is still readable for root, which herma then is.
        let _ = self.hand_to(User::own());
    }
}

/// A link itself, and not what it points to.
fn own(dir: impl std::os::fd::AsFd, name: impl rustix::path::Arg, user: User) -> io::Result<()> {
    let (uid, gid) = (Uid::from_raw(user.uid), Gid::from_raw(user.gid));
    Ok(chownat(dir, name, Some(uid), Some(gid), AtFlags::SYMLINK_NOFOLLOW)?)
}

type Visit<'a> = dyn FnMut(&OwnedFd, &std::ffi::CStr, &rustix::fs::Stat) -> io::Result<()> + 'a;

/// Visits everything below a room by its directory and its name there: no link is followed.
fn walk(room: &Path, visit: &mut Visit<'_>) -> io::Result<()> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let about = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", room.display()));
    let dir = openat(CWD, room, flags, Mode::empty()).map_err(|error| about(error.into()))?;
    below(&dir, DEEPEST, visit).map_err(about)
}

fn below(dir: &OwnedFd, depth: usize, visit: &mut Visit<'_>) -> io::Result<()> {
    // What lies deeper is not lent: whoever needs that needs another limit first.
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
