//! The lock that a landing in a target holds: a person's own command on their repository and a landing exclude each other.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;

use herma_files::open_with;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use crate::home::Home;

/// The name of the lock's file.
const LOCK: &str = "landing.lock";

impl Home {
    /// Waits for the lock and holds it until the file is dropped.
    pub fn lock_landing(&self) -> io::Result<File> {
        let file = self.landing_lock()?;
        flock(&file, FlockOperation::LockExclusive)?;
        Ok(file)
    }

    /// The same without waiting; none if another process holds the lock.
    pub fn try_lock_landing(&self) -> io::Result<Option<File>> {
        let file = self.landing_lock()?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(file)),
            Err(Errno::WOULDBLOCK) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    fn landing_lock(&self) -> io::Result<File> {
        let mut options = OpenOptions::new();
        open_with(options.write(true).create(true).truncate(false).mode(0o600), &self.root().join(LOCK))
    }
}
