//! Copies a layer's tree into a view: by reflink where the file system can, else byte by byte. Links stay links, and nothing is
//! written through one.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _, symlink};
use std::path::Path;

use rustix::fs::{Timespec, Timestamps, futimens, ioctl_ficlone};
use std::os::unix::fs::MetadataExt as _;

/// How the files of a view came about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyKind {
    /// They share their blocks with the layer until one is written.
    Reflinked,
    /// Their bytes were copied.
    Copied,
}

/// Copies everything below `from` to the directory `to`. Entries of `to` that exist win; a directory of `from` whose place is taken
/// by something else is an error. Sockets, pipes and devices are passed over.
pub fn copy_tree(from: &Path, to: &Path) -> io::Result<CopyKind> {
    let mut can_reflink = true;
    copy_directory(from, to, &mut can_reflink)?;
    Ok(if can_reflink { CopyKind::Reflinked } else { CopyKind::Copied })
}

fn copy_directory(from: &Path, to: &Path, can_reflink: &mut bool) -> io::Result<()> {
    match fs::symlink_metadata(to) {
        Ok(meta) if meta.is_dir() => {}
        Ok(_) => {
            let why = format!("{} is in the way of a directory of the environment", to.display());
            return Err(io::Error::other(why));
        }
        Err(_) => fs::DirBuilder::new().mode(0o700).create(to)?,
    }
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (source, target, kind) = (entry.path(), to.join(entry.file_name()), entry.file_type()?);
        if kind.is_dir() {
            copy_directory(&source, &target, can_reflink)?;
        } else if fs::symlink_metadata(&target).is_ok() {
            // The checkout's own file wins.
        } else if kind.is_symlink() {
            symlink(fs::read_link(&source)?, &target)?;
        } else if kind.is_file() {
            copy_file(&source, &target, can_reflink)?;
        }
    }
    // Last: a directory of a package cache may be read-only.
    let mode = fs::metadata(from)?.permissions().mode() | 0o700;
    fs::set_permissions(to, fs::Permissions::from_mode(mode & 0o777))
}

fn copy_file(from: &Path, to: &Path, can_reflink: &mut bool) -> io::Result<()> {
    let source = File::open(from)?;
    let meta = source.metadata()?;
    let mode = meta.permissions().mode() & 0o777;
    let mut target = OpenOptions::new().write(true).create_new(true).mode(mode | 0o200).open(to)?;
    if *can_reflink && ioctl_ficlone(&target, &source).is_err() {
        *can_reflink = false;
    }
    if !*can_reflink {
        io::copy(&mut &source, &mut target)?;
    }
    // Build tools compare times: a copy that looks newer would be built again.
    let at = |seconds, nanoseconds| Timespec { tv_sec: seconds, tv_nsec: nanoseconds };
    let times = Timestamps {
        last_access: at(meta.atime(), meta.atime_nsec()),
        last_modification: at(meta.mtime(), meta.mtime_nsec()),
    };
    futimens(&target, &times)?;
    target.set_permissions(fs::Permissions::from_mode(mode))
}
