//! The home directory: opening it, and the paths of its parts.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use herma_core::RunId;
use herma_files::{open_directory, open_with};
use rustix::fs::{IFlags, ioctl_getflags, ioctl_setflags};

use crate::error::HomeError;
use crate::place::HomePlace;
use crate::run_dirs::RunDirs;

/// The size of the file that is reserved so that a run can close itself on a full disk.
const RESERVE_BYTES: usize = 2 << 20;

/// herma's home directory. Only its owner can read or write it.
#[derive(Clone, Debug)]
pub struct Home {
    root: PathBuf,
}

impl Home {
    /// Opens the home, making missing parts. A directory that is in use for something else is refused.
    pub fn open(place: &HomePlace) -> Result<Self, HomeError> {
        place.prepare()?;
        let root = place.path();
        Self::make(root).map_err(|source| HomeError::Io { home: root.to_owned(), source })
    }

    /// Opens a home that exists, to read it: nothing is made and nothing is changed.
    pub fn existing(place: &HomePlace) -> Result<Self, HomeError> {
        place.check()?;
        let root = place.path();
        let canonical = root.canonicalize();
        let root = canonical.map_err(|source| HomeError::Io { home: root.to_owned(), source })?;
        Ok(Self { root })
    }

    fn make(root: &Path) -> io::Result<Self> {
        for dir in ["keys", "runs", "active"] {
            let dir = root.join(dir);
            DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(&dir)
                .map_err(|e| io::Error::new(e.kind(), format!("{}: {e}", dir.display())))?;
        }
        let home = Self { root: root.canonicalize()? };
        home.check_writable()?;
        spread_out(&root.join("runs"));
        home.refill_reserve();
        Ok(home)
    }

    /// The directory of the admissions.
    #[must_use]
    pub fn admissions(&self) -> PathBuf {
        self.root.join("admissions")
    }

    /// The trees of installed agents, each named by its digest.
    #[must_use]
    pub fn installed(&self) -> PathBuf {
        self.root.join("installed")
    }

    /// The layers of environments, each named by its key.
    #[must_use]
    pub fn environments(&self) -> PathBuf {
        self.root.join("environments")
    }

    /// The results of verification commands on bases.
    #[must_use]
    pub fn preflights(&self) -> PathBuf {
        self.root.join("preflights")
    }

    /// The lists and grants of egress.
    #[must_use]
    pub fn egress(&self) -> PathBuf {
        self.root.join("egress")
    }

    /// The records of patches that people applied, each named by its run.
    #[must_use]
    pub fn applied(&self) -> PathBuf {
        self.root.join("applied")
    }

    /// The directory itself.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The installation's keys.
    #[must_use]
    pub fn keys(&self) -> PathBuf {
        self.root.join("keys")
    }

    /// The approvers' records and locked keys.
    #[must_use]
    pub fn approvers(&self) -> PathBuf {
        self.keys().join("approvers")
    }

    /// The store's file.
    #[must_use]
    pub fn store(&self) -> PathBuf {
        self.root.join("store.db")
    }

    /// The operator's settings.
    #[must_use]
    pub fn settings(&self) -> PathBuf {
        self.root.join("settings.yaml")
    }

    /// A person's defaults for repositories.
    #[must_use]
    pub fn repository_defaults(&self) -> PathBuf {
        self.root.join("defaults")
    }

    /// The cached digest of herma's own program.
    #[must_use]
    pub fn own_digest(&self) -> PathBuf {
        self.root.join("own-digest.json")
    }

    /// The directories of a run.
    #[must_use]
    pub fn run(&self, id: RunId) -> RunDirs {
        RunDirs::at(self.root.join("runs").join(id.to_string()))
    }

    /// The runs that have a directory, oldest first.
    pub fn run_ids(&self) -> io::Result<Vec<RunId>> {
        let mut runs = Vec::new();
        for entry in fs::read_dir(self.root.join("runs"))? {
            runs.extend(entry?.file_name().to_str().and_then(|name| name.parse::<RunId>().ok()));
        }
        runs.sort_unstable();
        Ok(runs)
    }

    /// Frees the reserved space, so that a run can still close itself on a full disk.
    pub fn release_reserve(&self) {
        let _ = fs::remove_file(self.root.join("reserve"));
    }

    /// Detects a home that cannot be written here, where the message can name it.
    fn check_writable(&self) -> io::Result<()> {
        // A fixed name: the next process removes a file that a killed one left.
        let file = self.root.join(".writable");
        create_in_place(&file)?;
        match fs::remove_file(file) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => Err(e),
            _ => Ok(()),
        }
    }

    /// Reserves the space again. On a full disk there is none, and the next write fails with a message.
    fn refill_reserve(&self) {
        let file = self.root.join("reserve");
        if fs::symlink_metadata(&file).is_ok_and(|meta| meta.len() == RESERVE_BYTES as u64) {
            return;
        }
        let filled = create_in_place(&file).and_then(|mut f| f.write_all(&vec![0; RESERVE_BYTES]));
        if filled.is_err() {
            let _ = fs::remove_file(&file);
        }
    }
}

/// Opens a file for writing, making it where it is missing: no link is followed.
fn create_in_place(file: &Path) -> io::Result<File> {
    open_with(OpenOptions::new().write(true).create(true).truncate(false).mode(0o600), file)
        .map_err(|e| io::Error::new(e.kind(), format!("{}: {e}", file.display())))
}

/// Sets the `TOPDIR` hint, so that ext4 places unrelated subdirectories apart. Without it ext4 puts each run's files
/// where those of the previous run were just removed, and scans these for each new file. Other file systems ignore it.
pub fn spread_out(dir: &Path) {
    let Ok(dir) = open_directory(dir) else { return };
    if let Ok(flags) = ioctl_getflags(&dir)
        && !flags.contains(IFlags::TOPDIR)
    {
        let _ = ioctl_setflags(&dir, flags | IFlags::TOPDIR);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_spread_out(dir: &Path) -> bool {
        ioctl_getflags(File::open(dir).unwrap()).is_ok_and(|flags| flags.contains(IFlags::TOPDIR))
    }

    #[test]
    fn runs_lie_apart_where_the_file_system_knows_how() {
        let scratch = tempfile::tempdir().unwrap();
        let known = scratch.path().join("known");
        fs::create_dir(&known).unwrap();
        spread_out(&known);
        Home::open(&HomePlace::named(scratch.path().join("home"))).unwrap();
        assert_eq!(is_spread_out(&scratch.path().join("home/runs")), is_spread_out(&known));
    }
}
