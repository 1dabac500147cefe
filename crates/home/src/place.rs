//! Where herma's home is, and whether the directory there is one that herma may use.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use herma_files::read_regular;

use crate::error::HomeError;
use crate::marker::{MARKER, MARKER_TEXT};
use crate::ownership::check_owner;

/// The largest marker that is read.
const MAX_MARKER_BYTES: u64 = 256;

/// Where herma's home is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HomePlace {
    path: PathBuf,
    /// The user's home, where the path is the default below it.
    default_below: Option<PathBuf>,
}

impl HomePlace {
    /// A directory that a person named. herma makes at most its last component.
    #[must_use]
    pub fn named(path: PathBuf) -> Self {
        Self { path, default_below: None }
    }

    /// The default, `.local/state/herma` below the user's home. herma creates its missing parts, but not the user's home.
    #[must_use]
    pub fn default_below(user_home: PathBuf) -> Self {
        Self { path: user_home.join(".local/state/herma"), default_below: Some(user_home) }
    }

    /// The directory.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Makes the directory, or checks that the one that is there is empty or a herma home and private to its owner, and
    /// marks it. The permissions of a directory that is there are never changed.
    pub fn prepare(&self) -> Result<(), HomeError> {
        let home = &self.path;
        let failed = |source| HomeError::Io { home: home.clone(), source };
        match fs::metadata(home) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => self.make()?,
            Err(source) => return Err(failed(source)),
            Ok(there) if !there.is_dir() => return Err(HomeError::NotADirectory { home: home.clone() }),
            Ok(_) => {}
        }
        let is_marked = is_marked(home)?;
        if !is_marked && !is_earlier_home(home) && !is_empty(home).map_err(failed)? {
            // Another process may have marked it since.
            return if self::is_marked(home)? { check_private(home) } else { Err(self.foreign()) };
        }
        check_private(home)?;
        if is_marked { Ok(()) } else { mark(home).map_err(failed) }
    }

    /// Checks that the directory is a herma home and private to its owner, and changes nothing.
    pub(crate) fn check(&self) -> Result<(), HomeError> {
        let home = &self.path;
        match fs::metadata(home) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                return Err(HomeError::Missing { home: home.clone() });
            }
            Err(source) => return Err(HomeError::Io { home: home.clone(), source }),
            Ok(there) if !there.is_dir() => return Err(HomeError::NotADirectory { home: home.clone() }),
            Ok(_) => {}
        }
        if !is_marked(home)? && !is_earlier_home(home) {
            return Err(self.foreign());
        }
        check_private(home)
    }

    fn foreign(&self) -> HomeError {
        HomeError::Foreign { home: self.path.clone() }
    }

    fn make(&self) -> Result<(), HomeError> {
        let home = &self.path;
        let failed = |source| HomeError::Io { home: home.clone(), source };
        let parent = home.parent().unwrap_or(Path::new("/"));
        let existing = self.default_below.as_deref().unwrap_or(parent);
        if !existing.is_dir() {
            return Err(HomeError::NoParent { home: home.clone(), parent: existing.to_owned() });
        }
        let between = parent.strip_prefix(existing).unwrap_or(Path::new(""));
        let mut dir = existing.to_owned();
        for component in between {
            dir.push(component);
            make_directory(&dir).map_err(failed)?;
        }
        make_directory(home).map_err(failed)
    }
}

/// Makes one directory, private to its owner, where it is missing.
fn make_directory(dir: &Path) -> io::Result<()> {
    match DirBuilder::new().mode(0o700).create(dir) {
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists && dir.is_dir() => Ok(()),
        made => made,
    }
}

fn check_private(home: &Path) -> Result<(), HomeError> {
    match check_owner(home, rustix::process::geteuid().as_raw())? {
        Some(mode) if mode & 0o077 != 0 => Err(HomeError::Readable { home: home.to_owned(), mode }),
        _ => Ok(()),
    }
}

/// Whether the directory carries the marker of a format that this version knows.
fn is_marked(home: &Path) -> Result<bool, HomeError> {
    let file = home.join(MARKER);
    match read_regular(&file, MAX_MARKER_BYTES) {
        // An empty one is being written by another process, or was when that process was killed.
        Ok(text) if text.is_empty() || text == MARKER_TEXT.as_bytes() => Ok(true),
        Ok(_) => Err(HomeError::Format { file }),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(e) => Err(HomeError::Io {
            home: home.to_owned(),
            source: io::Error::new(e.kind(), format!("{}: {e}", file.display())),
        }),
    }
}

/// Whether an earlier version made this home: it has the installation's key and the store.
fn is_earlier_home(home: &Path) -> bool {
    ["keys/installation.key", "store.db"].iter().all(|file| fs::symlink_metadata(home.join(file)).is_ok())
}

/// Whether the directory is empty except for the entries of a new ext4 file system.
fn is_empty(dir: &Path) -> io::Result<bool> {
    for entry in fs::read_dir(dir)? {
        if entry?.file_name() != "lost+found" {
            return Ok(false);
        }
    }
    Ok(true)
}

fn mark(home: &Path) -> io::Result<()> {
    let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(home.join(MARKER));
    match made {
        Ok(mut file) => file.write_all(MARKER_TEXT.as_bytes()).and_then(|()| file.sync_all()),
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(e) => Err(e),
    }
}

#[cfg(test)]
mod tests;
