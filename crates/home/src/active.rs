//! Active runs: one marker file each in `active/`, locked by the process that executes the run.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use herma_core::RunId;
use herma_files::{open_directory, open_with};
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};

use crate::durable::{read_short, sync_dir};
use crate::home::Home;

/// How long to wait for the lock of a process that has exited.
const MAX_TAKEOVER_WAIT: Duration = Duration::from_secs(5);
/// How often the lock of a process that has exited is tried.
const TAKEOVER_POLL: Duration = Duration::from_millis(5);

/// An active run. The lock ends with the process, so a marker that can be locked belongs to an orphaned run.
#[derive(Debug)]
pub struct ActiveRun {
    file: PathBuf,
    _lock: File,
}

impl ActiveRun {
    /// Removes the marker: the run is closed and needs no recovery.
    pub fn done(self) -> io::Result<()> {
        fs::remove_file(&self.file)?;
        sync_dir(self.file.parent().unwrap_or(Path::new("/")))
    }
}

impl Home {
    /// Marks a run as active, durably, and locks the marker for this process.
    pub fn activate(&self, id: RunId) -> io::Result<ActiveRun> {
        // Until it is locked, a marker looks like that of a process that has exited.
        let _no_scan = self.lock_active()?;
        let file = self.active().join(id.to_string());
        let mut lock = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&file)?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive)?;
        write!(lock, "{}", rustix::process::getpid())?;
        sync_dir(&self.active())?;
        Ok(ActiveRun { file, _lock: lock })
    }

    /// The runs whose process has exited, each locked for this process.
    pub fn orphans(&self) -> io::Result<Vec<(RunId, ActiveRun)>> {
        let mut orphans = Vec::new();
        let _no_start = self.lock_active()?;
        for entry in fs::read_dir(self.active())? {
            let entry = entry?;
            let Some(id) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
            let file = entry.path();
            let lock = match open_with(OpenOptions::new().write(true), &file) {
                Ok(lock) => lock,
                Err(_) if fs::symlink_metadata(&file).is_ok_and(|meta| !meta.is_file()) => {
                    return Err(io::Error::other(format!("{}: it is not a regular file", file.display())));
                }
                Err(_) => continue,
            };
            // A process that holds the lock is alive; a file that was removed meanwhile belongs to a closed run.
            if take_over(&lock, &file) && file.exists() {
                orphans.push((id, ActiveRun { file, _lock: lock }));
            }
        }
        orphans.sort_by_key(|(id, _)| *id);
        Ok(orphans)
    }

    /// The runs that are marked as active, by whatever process.
    pub fn active_runs(&self) -> io::Result<Vec<RunId>> {
        let mut runs = Vec::new();
        for entry in fs::read_dir(self.active())? {
            runs.extend(entry?.file_name().to_str().and_then(|name| name.parse::<RunId>().ok()));
        }
        runs.sort_unstable();
        Ok(runs)
    }

    fn active(&self) -> PathBuf {
        self.root().join("active")
    }

    /// Keeps other processes from activating runs and from scanning for orphans until it is dropped.
    fn lock_active(&self) -> io::Result<File> {
        let dir = open_directory(&self.active())?;
        flock(&dir, FlockOperation::LockExclusive)?;
        Ok(dir)
    }
}

/// Takes the lock of a process that has exited. A child that it forked holds the lock too, until its exec; that takes
/// a moment.
fn take_over(lock: &File, file: &Path) -> bool {
    let deadline = Instant::now() + MAX_TAKEOVER_WAIT;
    loop {
        if flock(lock, FlockOperation::NonBlockingLockExclusive).is_ok() {
            return true;
        }
        let owner = read_short(file).and_then(|text| text.parse().ok()).and_then(Pid::from_raw);
        let exited = owner.is_some_and(|pid| test_kill_process(pid) == Err(Errno::SRCH));
        if !exited || Instant::now() > deadline {
            return false;
        }
        std::thread::sleep(TAKEOVER_POLL);
    }
}
