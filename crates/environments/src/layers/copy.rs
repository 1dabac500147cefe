//! Copies a layer's tree into a view: by reflink where the file system can, else byte by byte. Links stay links, and nothing is
//! written through one.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::{
    DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _, symlink,
};
use std::path::{Path, PathBuf};

use rustix::fs::{Timespec, Timestamps, futimens, ioctl_ficlone};

use super::limits::{TreeError, TreeLimits};

/// How much of a file is copied before the limits are checked again.
const CHUNK_BYTES: u64 = 64 << 20;

/// A directory with at least so many entries, or so many bytes, is mounted where a view can have mounts. Others cost less as a copy.
const MIN_MOUNT_ENTRIES: u64 = 64;
const MIN_MOUNT_BYTES: u64 = 4 << 20;
/// The most mounts of a view: each one slows every start of a job.
const MAX_MOUNTS: usize = 24;

/// How the files of a view came about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyKind {
    /// They share their blocks with the layer until one is written.
    Reflinked,
    /// Their bytes were copied.
    Copied,
}

/// Copies everything below `from` to the directory `to`. Entries of `to` that exist win and keep their modes; a directory of `from`
/// whose place is taken by something else is passed over, as are sockets, pipes and devices.
pub fn copy_tree(from: &Path, to: &Path) -> io::Result<CopyKind> {
    Ok(copy_tree_within(from, to, &TreeLimits::default())?)
}

/// The same, until the deadline or a cancellation of `limits`.
pub fn copy_tree_within(from: &Path, to: &Path, limits: &TreeLimits<'_>) -> Result<CopyKind, TreeError> {
    if fs::symlink_metadata(to).is_ok_and(|meta| !meta.is_dir()) {
        return Err(
            io::Error::new(io::ErrorKind::NotADirectory, "the target of a copy is no directory").into()
        );
    }
    let mut copy = Copy { limits, can_reflink: true, mounts: None };
    copy.directory(from, to)?;
    Ok(if copy.can_reflink { CopyKind::Reflinked } else { CopyKind::Copied })
}

/// The same, but each large directory that `to` lacks is made empty, for a mount. Returns their paths below both.
pub(super) fn copy_around_mounts(
    from: &Path,
    to: &Path,
    limits: &TreeLimits<'_>,
) -> Result<Vec<PathBuf>, TreeError> {
    let mut copy = Copy { limits, can_reflink: true, mounts: Some(Vec::new()) };
    copy.directory(from, to)?;
    let below = |mount: PathBuf| mount.strip_prefix(to).map(Path::to_owned).map_err(io::Error::other);
    Ok(copy.mounts.into_iter().flatten().map(below).collect::<Result<_, _>>()?)
}

/// Whether a mount of the directory costs less than a copy. Reads no more of it than it takes to know.
pub(super) fn is_large(dir: &Path) -> io::Result<bool> {
    let (mut entries, mut bytes, mut pending) = (0, 0, vec![dir.to_owned()]);
    while let Some(dir) = pending.pop() {
        for entry in fs::read_dir(dir)? {
            let entry = entry?;
            let meta = entry.metadata()?;
            (entries, bytes) = (entries + 1, meta.len().saturating_add(bytes));
            if entries >= MIN_MOUNT_ENTRIES || bytes >= MIN_MOUNT_BYTES {
                return Ok(true);
            }
            if meta.is_dir() {
                pending.push(entry.path());
            }
        }
    }
    Ok(false)
}

struct Copy<'a> {
    limits: &'a TreeLimits<'a>,
    can_reflink: bool,
    /// Directories that are left to mounts, where the view can have some.
    mounts: Option<Vec<PathBuf>>,
}

impl Copy<'_> {
    fn directory(&mut self, from: &Path, to: &Path) -> Result<(), TreeError> {
        let is_new = match fs::symlink_metadata(to) {
            Ok(meta) if meta.is_dir() => false,
            // A later base can track a file here, whose checkout wins over the layer.
            Ok(_) => return Ok(()),
            Err(_) => {
                fs::DirBuilder::new().mode(0o700).create(to)?;
                true
            }
        };
        if is_new && self.leave_to_mount(from, to)? {
            return set_mode_of(from, to);
        }
        for entry in fs::read_dir(from)? {
            self.limits.check()?;
            let entry = entry?;
            let (source, target, kind) = (entry.path(), to.join(entry.file_name()), entry.file_type()?);
            if kind.is_dir() {
                self.directory(&source, &target)?;
            } else if fs::symlink_metadata(&target).is_ok() {
                // The checkout's own file wins.
            } else if kind.is_symlink() {
                symlink(fs::read_link(&source)?, &target)?;
            } else if kind.is_file() {
                self.file(&source, &target)?;
            }
        }
        // The mode of a directory of the checkout counts as a change of a tracked file.
        if is_new {
            // Last: a directory of a package cache may be read-only.
            set_mode_of(from, to)?;
        }
        Ok(())
    }

    fn leave_to_mount(&mut self, from: &Path, to: &Path) -> Result<bool, TreeError> {
        match &mut self.mounts {
            Some(mounts) if mounts.len() < MAX_MOUNTS && is_large(from)? => {
                mounts.push(to.to_owned());
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    fn file(&mut self, from: &Path, to: &Path) -> Result<(), TreeError> {
        let source = File::open(from)?;
        let meta = source.metadata()?;
        let mode = meta.permissions().mode() & 0o777;
        let mut target = OpenOptions::new().write(true).create_new(true).mode(mode | 0o200).open(to)?;
        if self.can_reflink && ioctl_ficlone(&target, &source).is_err() {
            self.can_reflink = false;
        }
        if !self.can_reflink {
            while io::copy(&mut (&source).take(CHUNK_BYTES), &mut target)? == CHUNK_BYTES {
                self.limits.check()?;
            }
        }
        // Build tools compare times: a copy that looks newer would be built again.
        let at = |seconds, nanoseconds| Timespec { tv_sec: seconds, tv_nsec: nanoseconds };
        let times = Timestamps {
            last_access: at(meta.atime(), meta.atime_nsec()),
            last_modification: at(meta.mtime(), meta.mtime_nsec()),
        };
        futimens(&target, &times).map_err(io::Error::from)?;
        target.set_permissions(fs::Permissions::from_mode(mode))?;
        Ok(())
    }
}

/// Gives a directory the mode of another one.
pub(super) fn set_mode_of(from: &Path, to: &Path) -> Result<(), TreeError> {
    let mode = fs::metadata(from)?.permissions().mode() | 0o700;
    Ok(fs::set_permissions(to, fs::Permissions::from_mode(mode & 0o777))?)
}
