//! The lock of a layer: shared while it is used, exclusive while it is built or removed. It ends with the process.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

/// How often a lock is tried that another process holds.
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// How often a lock is tried before it counts as held: a list of all layers takes each lock for a moment.
const ATTEMPTS: u32 = 3;
/// The pause between these attempts.
const ATTEMPT_INTERVAL: Duration = Duration::from_millis(2);

/// A lock that is held.
#[derive(Debug)]
pub(super) struct KeyLock(File);

impl KeyLock {
    pub(super) fn shared(
        path: &Path,
        waiting: &mut dyn FnMut(),
        is_cancelled: &dyn Fn() -> bool,
    ) -> io::Result<Self> {
        wait(path, FlockOperation::NonBlockingLockShared, waiting, is_cancelled)
    }

    pub(super) fn exclusive(
        path: &Path,
        waiting: &mut dyn FnMut(),
        is_cancelled: &dyn Fn() -> bool,
    ) -> io::Result<Self> {
        wait(path, FlockOperation::NonBlockingLockExclusive, waiting, is_cancelled)
    }

    /// A shared lock, or none if `is_needed` says no more while another process holds an exclusive one.
    pub(super) fn shared_while(path: &Path, is_needed: impl Fn() -> bool) -> io::Result<Option<Self>> {
        loop {
            if let Some(lock) = attempt(open(path)?, FlockOperation::NonBlockingLockShared)? {
                return Ok(Some(lock));
            }
            if !is_needed() {
                return Ok(None);
            }
            std::thread::sleep(ATTEMPT_INTERVAL);
        }
    }

    pub(super) fn try_exclusive(path: &Path) -> io::Result<Option<Self>> {
        for _ in 1..ATTEMPTS {
            if let Some(lock) = attempt(open(path)?, FlockOperation::NonBlockingLockExclusive)? {
                return Ok(Some(lock));
            }
            std::thread::sleep(ATTEMPT_INTERVAL);
        }
        attempt(open(path)?, FlockOperation::NonBlockingLockExclusive)
    }

    /// An exclusive lock as a shared one.
    pub(super) fn downgrade(self) -> io::Result<Self> {
        flock(&self.0, FlockOperation::LockShared)?;
        Ok(self)
    }
}

/// The file stays when the lock ends: removing it would let two processes lock two files of one name.
fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(path)
}

fn attempt(file: File, operation: FlockOperation) -> io::Result<Option<KeyLock>> {
    match flock(&file, operation) {
        Ok(()) => Ok(Some(KeyLock(file))),
        Err(Errno::WOULDBLOCK) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn wait(
    path: &Path,
    operation: FlockOperation,
    waiting: &mut dyn FnMut(),
    is_cancelled: &dyn Fn() -> bool,
) -> io::Result<KeyLock> {
    for attempts in 0_u32.. {
        if let Some(lock) = attempt(open(path)?, operation)? {
            return Ok(lock);
        }
        if is_cancelled() {
            return Err(io::ErrorKind::Interrupted.into());
        }
        if attempts < ATTEMPTS {
            std::thread::sleep(ATTEMPT_INTERVAL);
            continue;
        }
        if attempts == ATTEMPTS {
            waiting();
        }
        std::thread::sleep(POLL_INTERVAL);
    }
    Err(io::Error::from(io::ErrorKind::WouldBlock))
}
