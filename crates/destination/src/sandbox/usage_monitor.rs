//! The usage monitor: periodically measures the disk usage and the open terminals of a job, and kills it above the
//! limits.
//!
//! File system quotas would be better but need privileges that herma does not have. A job can exceed a limit
//! between two checks; the kernel limits the size of a single file.

use std::collections::HashSet;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use herma_core::units::Bytes;
use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, fstatvfs, openat, statat};
use rustix::io::Errno;
use rustix::process::{Signal, pidfd_send_signal};

use super::terminals;
use crate::job::JobPaths;
use crate::limits::{Held, HeldBy, LimitName, Limits};
use crate::overlay::Overlay;

/// The delay before the first check, and the minimum interval.
const CHECK_INTERVAL: Duration = Duration::from_millis(500);
/// Checks take at most this fraction of the time: a large tree is checked less often.
const DUTY_DIVISOR: u32 = 20;
/// Deeper trees count as exceeding the limit; each level keeps one descriptor open.
const MAX_DEPTH: usize = 200;
/// A limit that could not be measured for this long counts as exceeded.
const MAX_UNKNOWN: Duration = Duration::from_secs(10);

/// The monitor of one job. It stops when it is dropped.
pub(crate) struct UsageMonitor {
    over: Arc<OnceLock<LimitName>>,
    /// Never written to: dropping it stops the thread.
    _alive: Sender<()>,
}

/// The limits that the monitor enforces.
pub(crate) fn held(limits: &Limits) -> [Held; 3] {
    [
        Held::new(LimitName::Disk, limits.disk.0, HeldBy::Watch),
        Held::new(LimitName::Files, limits.files, HeldBy::Watch),
        Held::new(LimitName::Terminals, limits.terminals, HeldBy::Watch),
    ]
}

/// The directories of a job, opened before its command can change their modes.
pub(crate) struct WatchedDirs(Vec<WatchedDir>);

struct WatchedDir {
    dir: OwnedFd,
    before: FsUsage,
}

impl WatchedDirs {
    /// Opens the directories. Call it before the command starts.
    pub(crate) fn of(paths: &JobPaths, overlays: &[Overlay]) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let open = |path| {
            // Symlinks are followed only here: the directories are herma's own, their content is not.
            let dir = openat(CWD, path, flags, Mode::empty())?;
            let before = FsUsage::of(&dir)?;
            Ok(WatchedDir { dir, before })
        };
        let all =
            [Some(&paths.workspace), paths.engine_dir.as_ref(), paths.home.as_ref()].into_iter().flatten();
        // A job's changes of an overlay are outside of its directories.
        let uppers = overlays.iter().map(|overlay| &overlay.upper);
        all.chain(uppers).map(open).collect::<io::Result<_>>().map(Self)
    }
}

/// The result of one check.
#[derive(Clone, Copy)]
pub(super) enum UsageCheck {
    Within,
    Over(LimitName),
    /// The limit could not be measured.
    Unknown(LimitName),
}

impl UsageMonitor {
    /// Monitors the directories and terminals of process `number`, and kills it through the pidfd `first` above a
    /// limit.
    pub(crate) fn start(dirs: WatchedDirs, limits: &Limits, first: OwnedFd, number: i32) -> io::Result<Self> {
        let limits = *limits;
        let over = Arc::new(OnceLock::new());
        let (alive, ended) = channel();
        let found = Arc::clone(&over);
        thread::Builder::new().name("watch".to_owned()).spawn(move || {
            let (mut due, mut sight) = (Instant::now(), UnknownTimers::default());
            while ended.recv_timeout(CHECK_INTERVAL) == Err(RecvTimeoutError::Timeout) {
                let begun = Instant::now();
                let mut over = sight.terminals.judge(terminals::look(number, limits.terminals), begun);
                if over.is_none() && begun >= due {
                    over = sight.dirs.judge(look(&dirs.0, &limits), begun);
                    due = Instant::now() + begun.elapsed() * DUTY_DIVISOR;
                }
                if let Some(limit) = over {
                    let _ = found.set(limit);
                    // An error means that it is already dead.
                    let _ = pidfd_send_signal(&first, Signal::KILL);
                    return;
                }
            }
        })?;
        Ok(Self { over, _alive: alive })
    }

    /// The exceeded limit, if any.
    pub(crate) fn over(&self) -> Option<LimitName> {
        self.over.get().copied()
    }
}

/// Since when each measurement has been impossible.
#[derive(Default)]
struct UnknownTimers {
    terminals: UnknownSince,
    dirs: UnknownSince,
}

#[derive(Default)]
struct UnknownSince(Option<Instant>);

impl UnknownSince {
    /// The limit that counts as exceeded, if any.
    fn judge(&mut self, found: UsageCheck, now: Instant) -> Option<LimitName> {
        match found {
            UsageCheck::Within => {
                self.0 = None;
                None
            }
            UsageCheck::Over(limit) => Some(limit),
            UsageCheck::Unknown(limit) => {
                let since = *self.0.get_or_insert(now);
                (now.duration_since(since) >= MAX_UNKNOWN).then_some(limit)
            }
        }
    }
}

/// Compares the content of the directories with the limits.
fn look(dirs: &[WatchedDir], limits: &Limits) -> UsageCheck {
    let mut sum =
        TreeUsage { bytes: 0, files: 0, linked: HashSet::new(), hidden: false, short: false, limits };
    for watched in dirs {
        if let Err(limit) = sum.add_dir(watched) {
            return UsageCheck::Over(limit);
        }
    }
    if !sum.hidden {
        return UsageCheck::Within;
    }
    // Unreadable directories keep their modes, because a test may depend on them. Their growth is estimated by that
    // of the whole file system since the start.
    for watched in dirs {
        match watched.before.growth(&watched.dir) {
            Ok((bytes, _)) if bytes > limits.disk.0 => return UsageCheck::Over(LimitName::Disk),
            Ok((_, Some(files))) if files > limits.files => return UsageCheck::Over(LimitName::Files),
            Ok((_, Some(_))) => {}
            Ok((_, None)) | Err(_) => sum.short = true,
        }
    }
    if sum.short { UsageCheck::Unknown(LimitName::Files) } else { UsageCheck::Within }
}

/// The usage of a file system.
struct FsUsage {
    bytes: u64,
    /// Some file systems, such as btrfs, do not count files.
    files: Option<u64>,
}

impl FsUsage {
    fn of(dir: impl AsFd) -> io::Result<Self> {
        let seen = fstatvfs(dir)?;
        let bytes = seen.f_blocks.saturating_sub(seen.f_bfree).saturating_mul(seen.f_frsize);
        Ok(Self { bytes, files: (seen.f_files > 0).then(|| seen.f_files.saturating_sub(seen.f_ffree)) })
    }

    /// Bytes and files added since.
    fn growth(&self, dir: impl AsFd) -> io::Result<(u64, Option<u64>)> {
        let now = Self::of(dir)?;
        let files = now.files.zip(self.files).map(|(now, before)| now.saturating_sub(before));
        Ok((now.bytes.saturating_sub(self.bytes), files))
    }
}

struct TreeUsage<'a> {
    bytes: u64,
    files: u64,
    /// Hard-linked files, so that each counts once.
    linked: HashSet<(u64, u64)>,
    /// Whether an entry could not be read.
    hidden: bool,
    /// Whether that was for lack of descriptors, or the file system does not count files.
    short: bool,
    limits: &'a Limits,
}

impl TreeUsage<'_> {
    fn add_dir(&mut self, watched: &WatchedDir) -> Result<(), LimitName> {
        // Not reopened: the job may have removed the permission.
        match rustix::io::fcntl_dupfd_cloexec(&watched.dir, 0).and_then(Dir::new) {
            Ok(mut dir) => {
                dir.rewind();
                self.add(dir, MAX_DEPTH)
            }
            Err(error) => {
                self.unseen(error);
                Ok(())
            }
        }
    }

    /// Adds the content of a directory.
    fn add(&mut self, mut dir: Dir, depth: usize) -> Result<(), LimitName> {
        let Some(below) = depth.checked_sub(1) else { return Err(LimitName::Files) };
        while let Some(entry) = dir.read() {
            let entry = match entry {
                Ok(entry) => entry,
                Err(error) => {
                    self.unseen(error);
                    break;
                }
            };
            let name = entry.file_name();
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            match dir.fd().and_then(|dir| statat(dir, name, AtFlags::SYMLINK_NOFOLLOW)) {
                Ok(seen) => {
                    if self.count(&seen)? {
                        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                        let opened = dir.fd().and_then(|dir| openat(dir, name, flags, Mode::empty()));
                        match opened.and_then(Dir::new) {
                            Ok(inner) => self.add(inner, below)?,
                            Err(error) => self.unseen(error),
                        }
                    }
                }
                Err(error) => self.unseen(error),
            }
        }
        Ok(())
    }

    /// Counts one file; returns whether it is a directory.
    fn count(&mut self, seen: &rustix::fs::Stat) -> Result<bool, LimitName> {
        let is_dir = FileType::from_raw_mode(seen.st_mode) == FileType::Directory;
        if seen.st_nlink > 1 && !is_dir && !self.linked.insert((seen.st_dev, seen.st_ino)) {
            return Ok(false);
        }
        self.files += 1;
        self.bytes =
            self.bytes.saturating_add(u64::try_from(seen.st_blocks).unwrap_or(0).saturating_mul(512));
        let Bytes(most) = self.limits.disk;
        if self.bytes > most {
            return Err(LimitName::Disk);
        }
        if self.files > self.limits.files {
            return Err(LimitName::Files);
        }
        Ok(is_dir)
    }

    /// A vanished entry is fine; any other unreadable entry may hide usage.
    fn unseen(&mut self, error: Errno) {
        self.hidden |= error != Errno::NOENT;
        self.short |= matches!(error, Errno::MFILE | Errno::NFILE);
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::{Path, PathBuf};

    use super::*;

    fn limits() -> Limits {
        Limits { disk: Bytes(1 << 20), files: 10, ..Limits::default() }
    }

    fn look(dirs: &[&Path], limits: &Limits) -> Option<LimitName> {
        let engine_dir = dirs.get(1).map(|&dir| dir.to_owned());
        let workspace = dirs[0].to_owned();
        let paths = JobPaths { engine_dir, ..JobPaths::new(workspace) };
        match super::look(&WatchedDirs::of(&paths, &[]).unwrap().0, limits) {
            UsageCheck::Within => None,
            UsageCheck::Over(limit) => Some(limit),
            UsageCheck::Unknown(limit) => panic!("{limit:?} was not seen"),
        }
    }

    #[test]
    fn bytes_and_files_are_summed_over_all_directories() {
        let (a, b) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let dirs = [a.path(), b.path()];
        fs::create_dir(a.path().join("deep")).unwrap();
        fs::write(a.path().join("deep/one"), vec![1; 600 << 10]).unwrap();
        assert_eq!(look(&dirs, &limits()), None);
        // Another hard link of the same file is not another file.
        fs::hard_link(a.path().join("deep/one"), a.path().join("two")).unwrap();
        assert_eq!(look(&dirs, &limits()), None);
        fs::write(b.path().join("three"), vec![1; 600 << 10]).unwrap();
        assert_eq!(look(&dirs, &limits()), Some(LimitName::Disk));
        fs::remove_file(b.path().join("three")).unwrap();
        for number in 0..10 {
            fs::write(b.path().join(number.to_string()), "").unwrap();
        }
        assert_eq!(look(&dirs, &limits()), Some(LimitName::Files));
    }

    #[test]
    fn a_link_to_the_whole_machine_is_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink("/", dir.path().join("all")).unwrap();
        assert_eq!(look(&[dir.path()], &limits()), None);
    }

    #[test]
    fn a_tree_that_is_too_deep_exceeds_the_limit() {
        let dir = tempfile::tempdir().unwrap();
        let deep: PathBuf = std::iter::repeat_n("d", 300).collect();
        fs::create_dir_all(dir.path().join(deep)).unwrap();
        let many = Limits { files: 100_000, disk: Bytes(1 << 40), ..Limits::default() };
        assert_eq!(look(&[dir.path()], &many), Some(LimitName::Files));
    }

    #[test]
    fn a_count_that_stays_impossible_is_a_passed_limit() {
        let (mut blind, start) = (UnknownSince::default(), Instant::now());
        let unseen = || UsageCheck::Unknown(LimitName::Files);
        assert_eq!(blind.judge(unseen(), start), None);
        assert_eq!(blind.judge(unseen(), start + MAX_UNKNOWN / 2), None);
        assert_eq!(blind.judge(UsageCheck::Within, start + MAX_UNKNOWN / 2), None);
        assert_eq!(blind.judge(unseen(), start + MAX_UNKNOWN), None, "it was seen in between");
        assert_eq!(blind.judge(unseen(), start + MAX_UNKNOWN * 2), Some(LimitName::Files));
    }
}
