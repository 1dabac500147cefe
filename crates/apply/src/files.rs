//! Files of a work tree, reached from its top directory through no link, and changed in one step each.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use herma_core::report::Mode;
use herma_core::{RepoPath, RunId};
use herma_git::{ObjectFormat, blob_id};
use rustix::fs::{
    AtFlags, FileType, Mode as Permissions, OFlags, RenameFlags, ResolveFlags, mkdirat, openat, openat2,
    readlinkat, renameat_with, statat, symlinkat, unlinkat,
};
use rustix::io::Errno;

use crate::journal::FileState;

/// No component may be a link, leave the work tree, or be on another file system.
const RESOLVE: ResolveFlags = ResolveFlags::BENEATH
    .union(ResolveFlags::NO_SYMLINKS)
    .union(ResolveFlags::NO_MAGICLINKS)
    .union(ResolveFlags::NO_XDEV);

/// The permissions of new files and directories, from which the umask takes some.
const NEW_FILE: u32 = 0o666;
const NEW_EXECUTABLE: u32 = 0o777;

/// The start of the names under which files are written before they are in their place.
const ASIDE: &str = ".herma-apply-";

/// The state of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// Nothing has the name.
    Nothing,
    /// A file or a link.
    File(FileState),
    /// A directory.
    Directory,
    /// A FIFO, a socket or a device.
    Special,
    /// A part of the path is a link, a file, or on another file system.
    Unreachable,
}

impl Found {
    /// Whether it is this file, or nothing where that is none.
    pub(crate) fn is(&self, state: Option<&FileState>) -> bool {
        match (self, state) {
            (Self::Nothing, None) => true,
            (Self::File(found), Some(state)) => found.is_like(state),
            _ => false,
        }
    }

    /// The state in words, where it is not the expected one.
    pub(crate) fn in_words(&self) -> &'static str {
        match self {
            Self::Nothing => "it is gone",
            Self::File(_) => "its content or kind is another one",
            Self::Directory => "it is a directory",
            Self::Special => "it is neither a file nor a directory",
            Self::Unreachable => "a part of its path is a link or a file",
        }
    }
}

/// The work tree of a repository.
pub(crate) struct WorkTree {
    top: OwnedFd,
    format: ObjectFormat,
    /// The contents to write, each in a file named by its blob id.
    contents: PathBuf,
}

impl WorkTree {
    pub(crate) fn open(top: &Path, format: ObjectFormat, contents: PathBuf) -> io::Result<Self> {
        let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(Self { top: rustix::fs::open(top, flags, Permissions::empty())?, format, contents })
    }

    /// The directory that holds the path.
    fn parent(&self, path: &RepoPath) -> rustix::io::Result<OwnedFd> {
        match path.parent() {
            None => self.directory(b"."),
            Some(parent) => self.directory(parent.as_bytes()),
        }
    }

    fn directory(&self, path: &[u8]) -> rustix::io::Result<OwnedFd> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        openat2(&self.top, path, flags, Permissions::empty(), RESOLVE)
    }

    /// The state of a path.
    pub(crate) fn state(&self, path: &RepoPath) -> io::Result<Found> {
        match self.parent(path) {
            Ok(parent) => self.state_in(&parent, path.name()),
            Err(Errno::NOENT) => Ok(Found::Nothing),
            Err(Errno::NOTDIR | Errno::LOOP | Errno::XDEV) => Ok(Found::Unreachable),
            Err(error) => Err(error.into()),
        }
    }

    fn state_in(&self, parent: &OwnedFd, name: &[u8]) -> io::Result<Found> {
        let stat = match statat(parent, name, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => return Ok(Found::Nothing),
            stat => stat?,
        };
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => Ok(Found::Directory),
            FileType::Symlink => {
                let target = readlinkat(parent, name, Vec::new())?;
                let bytes = target.as_bytes();
                let id = blob_id(self.format, bytes.len() as u64, bytes)?;
                Ok(Found::File(FileState { mode: Mode::Symlink, id, permissions: None }))
            }
            FileType::RegularFile => {
                let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
                let file = File::from(openat(parent, name, flags, Permissions::empty())?);
                let meta = rustix::fs::fstat(&file)?;
                if FileType::from_raw_mode(meta.st_mode) != FileType::RegularFile {
                    return Ok(Found::Special);
                }
                let mode = if meta.st_mode & 0o100 == 0 { Mode::File } else { Mode::Executable };
                let id = blob_id(self.format, u64::try_from(meta.st_size).unwrap_or(0), file)?;
                Ok(Found::File(FileState { mode, id, permissions: Some(meta.st_mode & 0o7777) }))
            }
            _ => Ok(Found::Special),
        }
    }

    /// The names in a directory.
    pub(crate) fn names(&self, path: &RepoPath) -> io::Result<Vec<Vec<u8>>> {
        let mut names = Vec::new();
        for entry in rustix::fs::Dir::new(self.directory(path.as_bytes())?)? {
            let name = entry?.file_name().to_bytes().to_vec();
            if name != b"." && name != b".." {
                names.push(name);
            }
        }
        Ok(names)
    }

    /// Makes a directory, where it is missing.
    pub(crate) fn make_directory(&self, path: &RepoPath) -> io::Result<()> {
        match mkdirat(self.parent(path)?, path.name(), Permissions::from_raw_mode(NEW_EXECUTABLE)) {
            Err(Errno::EXIST) => self.directory(path.as_bytes()).map(drop).map_err(Into::into),
            made => made.map_err(Into::into),
        }
    }

    /// Removes a directory, if it is there and empty.
    pub(crate) fn remove_directory(&self, path: &RepoPath) -> io::Result<()> {
        let Ok(parent) = self.parent(path) else { return Ok(()) };
        match unlinkat(parent, path.name(), AtFlags::REMOVEDIR) {
            Err(Errno::NOENT | Errno::NOTEMPTY | Errno::EXIST | Errno::NOTDIR) => Ok(()),
            removed => removed.map_err(Into::into),
        }
    }

    /// Brings a path from one state to the other in one step of the file system. `aside` is an unused name beside it. The old file is
    /// removed only if it is the expected one: an edit that was saved a moment ago is put back, and is the error.
    pub(crate) fn change(
        &self,
        path: &RepoPath,
        aside: &[u8],
        (from, to): (Option<&FileState>, Option<&FileState>),
    ) -> io::Result<()> {
        let parent = self.parent(path)?;
        let name = path.name();
        match (from, to) {
            (None, None) => return Ok(()),
            (None, Some(to)) => {
                self.write_aside(&parent, aside, to)?;
                rename(&parent, aside, name, RenameFlags::NOREPLACE)?;
            }
            (Some(from), to) => {
                match to {
                    Some(to) => {
                        self.write_aside(&parent, aside, to)?;
                        rename(&parent, aside, name, RenameFlags::EXCHANGE)?;
                    }
                    None => rename(&parent, name, aside, RenameFlags::NOREPLACE)?,
                }
                if !self.state_in(&parent, aside)?.is(Some(from)) {
                    let back = if to.is_some() { RenameFlags::EXCHANGE } else { RenameFlags::NOREPLACE };
                    rename(&parent, aside, name, back)?;
                    if to.is_some() {
                        unlinkat(&parent, aside, AtFlags::empty())?;
                    }
                    return Err(io::Error::other("another program changed it a moment ago"));
                }
                unlinkat(&parent, aside, AtFlags::empty())?;
            }
        }
        sync(&parent)
    }

    /// Writes the file with its content and permissions, durably, under another name.
    fn write_aside(&self, parent: &OwnedFd, aside: &[u8], to: &FileState) -> io::Result<()> {
        let from = self.contents.join(&to.id);
        if to.mode == Mode::Symlink {
            let mut target = Vec::new();
            File::open(from)?.read_to_end(&mut target)?;
            return Ok(symlinkat(std::ffi::OsStr::from_bytes(&target), parent, aside)?);
        }
        let new = if to.mode == Mode::Executable { NEW_EXECUTABLE } else { NEW_FILE };
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut file = File::from(openat(parent, aside, flags, Permissions::from_raw_mode(new))?);
        io::copy(&mut File::open(from)?, &mut file)?;
        if let Some(permissions) = to.permissions {
            rustix::fs::fchmod(&file, Permissions::from_raw_mode(permissions))?;
        }
        file.sync_all()
    }

    /// Removes a file that was cut off under the other name, if it has one of these two states. Otherwise it is the person's, and the
    /// answer is false.
    pub(crate) fn remove_aside(
        &self,
        path: &RepoPath,
        aside: &[u8],
        states: [Option<&FileState>; 2],
    ) -> io::Result<bool> {
        let Ok(parent) = self.parent(path) else { return Ok(true) };
        let found = self.state_in(&parent, aside)?;
        if found == Found::Nothing {
            return Ok(true);
        }
        let partial = || self.is_start_of_one(&parent, aside, states);
        if !states.iter().any(|state| state.is_some() && found.is(*state)) && !partial()? {
            return Ok(false);
        }
        unlinkat(&parent, aside, AtFlags::empty())?;
        Ok(true)
    }

    /// Whether the file is the first part of one of these contents: writing it was cut off.
    fn is_start_of_one(
        &self,
        parent: &OwnedFd,
        aside: &[u8],
        states: [Option<&FileState>; 2],
    ) -> io::Result<bool> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let Ok(file) = openat(parent, aside, flags, Permissions::empty()) else { return Ok(false) };
        let mut file = File::from(file);
        if !file.metadata()?.is_file() {
            return Ok(false);
        }
        let mut written = Vec::new();
        file.read_to_end(&mut written)?;
        for state in states.into_iter().flatten() {
            if fs::read(self.contents.join(&state.id))?.starts_with(&written) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// Brings one file from one state to another, with the directories around it: git keeps no empty ones.
pub(crate) fn bring(
    work: &WorkTree,
    path: &RepoPath,
    aside: &[u8],
    (from, to): (Option<&FileState>, Option<&FileState>),
) -> io::Result<()> {
    let mut above = Vec::new();
    let mut parent = path.parent();
    while let Some(directory) = parent {
        parent = directory.parent();
        above.push(directory);
    }
    if to.is_some() {
        if from.is_none() && work.state(path)? == Found::Directory {
            work.remove_directory(path)?;
        }
        for directory in above.iter().rev() {
            work.make_directory(directory)?;
        }
    }
    work.change(path, aside, (from, to))?;
    if to.is_none() {
        for directory in &above {
            work.remove_directory(directory)?;
        }
    }
    Ok(())
}

/// The name under which the file with this number is written first.
pub(crate) fn aside(run: RunId, at: usize) -> Vec<u8> {
    format!("{ASIDE}{}-{at}", run.short()).into_bytes()
}

fn rename(parent: &OwnedFd, from: &[u8], to: &[u8], flags: RenameFlags) -> io::Result<()> {
    renameat_with(parent, from, parent, to, flags).map_err(|error| match error {
        Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP => {
            io::Error::other("the file system cannot exchange two files in one step")
        }
        other => other.into(),
    })
}

fn sync(directory: &OwnedFd) -> io::Result<()> {
    rustix::fs::fsync(directory.as_fd()).map_err(Into::into)
}
