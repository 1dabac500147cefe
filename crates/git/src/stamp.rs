//! A file's kernel metadata, to detect changes without reading it.

use rustix::fs::Stat;

/// A file's kernel metadata. The kernel updates the change time on every change of content or mode, and no user can
/// set it back: a file with the same stamp has the same content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp {
    device: u64,
    inode: u64,
    mode: u32,
    size: i64,
    changed: (i64, i64),
}

/// A file that changed more recently could change again within the same clock tick.
const TICK_SECONDS: i64 = 2;

impl Stamp {
    pub(crate) fn of(stat: &Stat) -> Self {
        Self {
            device: stat.st_dev,
            inode: stat.st_ino,
            mode: stat.st_mode,
            size: stat.st_size,
            changed: (stat.st_ctime, i64::try_from(stat.st_ctime_nsec).unwrap_or(0)),
        }
    }

    /// The kind and the permission bits.
    pub(crate) fn mode(&self) -> u32 {
        self.mode
    }

    /// The size.
    pub(crate) fn bytes(&self) -> u64 {
        u64::try_from(self.size).unwrap_or(0)
    }

    /// The change time, as seconds and nanoseconds.
    pub(crate) fn changed(&self) -> (i64, i64) {
        self.changed
    }

    pub(crate) fn is_settled(&self) -> bool {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Realtime).tv_sec;
        self.changed.0 < now - TICK_SECONDS
    }
}
