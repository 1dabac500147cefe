//! Directories that a flag or a setting names: herma makes at most the last component, and changes no permissions.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

/// A directory that cannot be used. Nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum DirectoryError {
    /// There is a file of this name.
    #[error("{what} {} is not a directory", dir.display())]
    NotADirectory {
        /// The purpose of the directory.
        what: &'static str,
        /// The directory.
        dir: PathBuf,
    },
    /// The directory above it does not exist.
    #[error("{what} {} cannot be made: {} does not exist", dir.display(), parent(dir).display())]
    NoParent {
        /// The purpose of the directory.
        what: &'static str,
        /// The directory.
        dir: PathBuf,
    },
    /// The system refuses to make it.
    #[error("{what} {} cannot be made: {source}", dir.display())]
    Make {
        /// The purpose of the directory.
        what: &'static str,
        /// The directory.
        dir: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// It cannot be read.
    #[error("{what} {} cannot be read: {source}", dir.display())]
    Read {
        /// The purpose of the directory.
        what: &'static str,
        /// The directory.
        dir: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// It has files, and none that herma makes.
    #[error(
        "{what} {} is not empty, and herma did not make it: it has none of {}; nothing was changed",
        dir.display(),
        entries.join(", ")
    )]
    Foreign {
        /// The purpose of the directory.
        what: &'static str,
        /// The directory.
        dir: PathBuf,
        /// The entries that herma makes in it.
        entries: &'static [&'static str],
    },
}

impl DirectoryError {
    /// The next step for the user; none where none is known.
    #[must_use]
    pub fn next_step(&self) -> Option<String> {
        match self {
            Self::NotADirectory { .. } => Some("name another one".to_owned()),
            Self::NoParent { dir, .. } => {
                Some(format!("create {}, or name another directory", parent(dir).display()))
            }
            Self::Make { .. } => Some("name another one, or make it yourself".to_owned()),
            Self::Read { .. } => None,
            Self::Foreign { .. } => {
                Some("name an empty directory, or one that does not exist yet".to_owned())
            }
        }
    }
}

/// Makes the directory where it is missing; the one above it must exist. `what` names it in messages.
pub fn make_last_component(what: &'static str, dir: &Path, mode: u32) -> Result<(), DirectoryError> {
    let path = || dir.to_owned();
    match DirBuilder::new().mode(mode).create(dir) {
        Ok(()) => Ok(()),
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists && dir.is_dir() => Ok(()),
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {
            Err(DirectoryError::NotADirectory { what, dir: path() })
        }
        Err(_) if !parent(dir).exists() => Err(DirectoryError::NoParent { what, dir: path() }),
        Err(source) => Err(DirectoryError::Make { what, dir: path(), source }),
    }
}

/// Makes a directory that only herma fills, or checks that the existing one is empty or has one of the entries that herma
/// makes in it.
pub fn make_own(
    what: &'static str,
    dir: &Path,
    entries: &'static [&'static str],
) -> Result<(), DirectoryError> {
    make_last_component(what, dir, 0o700)?;
    let is_own = || entries.iter().any(|name| fs::symlink_metadata(dir.join(name)).is_ok());
    let first = fs::read_dir(dir).and_then(|mut all| all.next().transpose());
    let first = first.map_err(|source| DirectoryError::Read { what, dir: dir.to_owned(), source })?;
    if first.is_none() || is_own() {
        return Ok(());
    }
    Err(DirectoryError::Foreign { what, dir: dir.to_owned(), entries })
}

fn parent(dir: &Path) -> &Path {
    dir.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}
