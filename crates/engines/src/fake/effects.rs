//! The file operations of a script. Paths that lead out of the workspace are used as they are: the destination
//! confines an engine, not the engine itself.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use rustix::fs::{CWD, FileType, Mode, mknodat};

use super::values::Permissions;

pub(super) fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    make_parent(path)?;
    fs::write(path, bytes)
}

pub(super) fn append(path: &Path, text: &str) -> io::Result<()> {
    make_parent(path)?;
    OpenOptions::new().append(true).create(true).open(path)?.write_all(text.as_bytes())
}

pub(super) fn delete(path: &Path) -> io::Result<()> {
    if path.symlink_metadata()?.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) }
}

pub(super) fn rename(from: &Path, to: &Path) -> io::Result<()> {
    make_parent(to)?;
    fs::rename(from, to)
}

pub(super) fn chmod(path: &Path, mode: Permissions) -> io::Result<()> {
    fs::set_permissions(path, fs::Permissions::from_mode(mode.bits()))
}

pub(super) fn symlink(path: &Path, target: &Path) -> io::Result<()> {
    make_parent(path)?;
    std::os::unix::fs::symlink(target, path)
}

pub(super) fn mkdir(path: &Path) -> io::Result<()> {
    fs::create_dir_all(path)
}

pub(super) fn fifo(path: &Path) -> io::Result<()> {
    make_parent(path)?;
    mknodat(CWD, path, FileType::Fifo, Mode::from_raw_mode(0o644), 0).map_err(io::Error::from)
}

fn make_parent(path: &Path) -> io::Result<()> {
    path.parent().map_or(Ok(()), fs::create_dir_all)
}
