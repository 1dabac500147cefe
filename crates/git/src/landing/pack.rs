//! A pack, copied into a directory of packs and removed again.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use crate::error::GitError;

/// In this order: git sees a pack once its index exists, and then the pack must be complete.
const BROUGHT: [&str; 2] = ["pack", "idx"];
/// In this order: git ignores a pack without an index. The others are added by git later.
const REMOVED: [&str; 4] = ["idx", "pack", "rev", "bitmap"];

/// A pack of the target that a landing brought, or is about to.
pub(super) struct Pack<'a> {
    pub(super) dir: &'a Path,
    pub(super) name: &'a str,
}

impl Pack<'_> {
    /// One of its files.
    pub(super) fn file(&self, extension: &str) -> PathBuf {
        self.dir.join(format!("{}.{extension}", self.name))
    }

    /// An incomplete file. git ignores such names, and removes old ones.
    fn unfinished(&self, extension: &str) -> PathBuf {
        self.dir.join(format!("tmp_herma_{}.{extension}", self.name))
    }

    /// Copies the pack of that name from `waiting`, each file atomically.
    pub(super) fn bring_in(&self, waiting: &Path) -> Result<(), GitError> {
        let dir = |e| GitError::file("write to", self.dir)(e);
        // As readable as its directory, as git does in a shared repository.
        let readable = fs::metadata(self.dir).map_err(dir)?.permissions().mode() & 0o444;
        for extension in BROUGHT {
            let from = waiting.join(format!("{}.{extension}", self.name));
            let (unfinished, file) = (self.unfinished(extension), self.file(extension));
            remove(&unfinished)?;
            let mut content = File::open(&from).map_err(GitError::file("read", &from))?;
            let copied = OpenOptions::new()
                .write(true)
                .create_new(true)
                .mode(0o600)
                .open(&unfinished)
                .and_then(|mut copy| {
                    io::copy(&mut content, &mut copy)?;
                    copy.set_permissions(Permissions::from_mode(readable))?;
                    copy.sync_all()
                })
                .and_then(|()| fs::rename(&unfinished, &file));
            copied.map_err(GitError::file("write", file))?;
        }
        File::open(self.dir).and_then(|dir| dir.sync_all()).map_err(dir)
    }

    /// Removes every file of it, also those of an interrupted copy.
    pub(super) fn take_out(&self) -> Result<(), GitError> {
        for extension in REMOVED {
            remove(&self.file(extension))?;
        }
        for extension in BROUGHT {
            remove(&self.unfinished(extension))?;
        }
        Ok(())
    }

    /// Whether git sees it.
    pub(super) fn is_seen(&self) -> bool {
        self.file("idx").exists() && self.file("pack").exists()
    }

    /// Whether the pack is marked to be kept, or another user wrote an object that it has: git then updates the
    /// pack's time instead of writing the object again. A copied pack is never newer than its index.
    pub(super) fn is_wanted(&self) -> Result<bool, GitError> {
        let written = |extension| {
            let path = self.file(extension);
            let meta = fs::metadata(&path).map_err(GitError::file("read", path))?;
            Ok::<_, GitError>((meta.mtime(), meta.mtime_nsec()))
        };
        Ok(self.file("keep").exists() || written("pack")? > written("idx")?)
    }
}

fn remove(path: &Path) -> Result<(), GitError> {
    match fs::remove_file(path) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(GitError::file("remove", path)(e)),
        _ => Ok(()),
    }
}
