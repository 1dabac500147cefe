//! Looks again and again at how much lies in the rooms and how many terminals are open, and kills what takes too much.
//!
//! A quota of the file system would be better, and needs privileges that herma does not have. Between two looks much
//! can be written; the size of one file is limited by the kernel.

use std::collections::HashSet;
use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use herma_model::units::Bytes;
use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, openat, statat};
use rustix::process::{Signal, pidfd_send_signal};

use super::terminals;
use crate::job::Rooms;
use crate::limits::{Held, HeldBy, LimitName, Limits};

/// The first look, and the shortest time between two.
const SOON: Duration = Duration::from_millis(500);
/// Looking at the rooms takes at most this part of the time: a large tree is looked at less often.
const SHARE: u32 = 20;
/// Nobody nests directories deeper than this; each level keeps one file open while it is looked at.
const DEEPEST: usize = 200;

/// A watch over the rooms of one job. It ends when it is dropped.
pub(crate) struct Watch {
    over: Arc<OnceLock<LimitName>>,
    /// Never written to: that it is gone tells the thread to end.
    _alive: Sender<()>,
}

/// What a watch holds.
pub(crate) fn held(limits: &Limits) -> [Held; 3] {
    [
        Held::new(LimitName::Disk, limits.disk.0, HeldBy::Watch),
        Held::new(LimitName::Files, limits.files, HeldBy::Watch),
        Held::new(LimitName::Terminals, limits.terminals, HeldBy::Watch),
    ]
}

impl Watch {
    /// Watches the rooms and the terminals, and kills the process with this number, behind `first`, when there is too much.
    pub(crate) fn start(rooms: &Rooms, limits: &Limits, first: OwnedFd, number: i32) -> io::Result<Self> {
        let rooms: Vec<PathBuf> =
            [Some(&rooms.workspace), rooms.engine_dir.as_ref()].into_iter().flatten().cloned().collect();
        let limits = *limits;
        let free_before = free(&rooms);
        let over = Arc::new(OnceLock::new());
        let (alive, ended) = channel();
        let found = Arc::clone(&over);
        thread::Builder::new().name("watch".to_owned()).spawn(move || {
            let mut due = Instant::now();
            while ended.recv_timeout(SOON) == Err(RecvTimeoutError::Timeout) {
                let begun = Instant::now();
                let mut over = (terminals::count(number) > limits.terminals).then_some(LimitName::Terminals);
                if over.is_none() && begun >= due {
                    over = look(&rooms, &limits, free_before);
                    due = Instant::now() + begun.elapsed() * SHARE;
                }
                if let Some(limit) = over {
                    let _ = found.set(limit);
                    // An error says that it is dead already.
                    let _ = pidfd_send_signal(&first, Signal::KILL);
                    return;
                }
            }
        })?;
        Ok(Self { over, _alive: alive })
    }

    /// The limit that was passed, if one was.
    pub(crate) fn over(&self) -> Option<LimitName> {
        self.over.get().copied()
    }
}

/// The limit that the rooms are over, if they are.
fn look(rooms: &[PathBuf], limits: &Limits, free_before: u64) -> Option<LimitName> {
    let mut sum = Sum { bytes: 0, files: 0, linked: HashSet::new(), hidden: false, limits };
    for room in rooms {
        // Followed here only: the rooms are herma's own, what lies in them is not.
        let Ok(dir) = openat(CWD, room, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
        else {
            continue;
        };
        if let Err(limit) = sum.add(&dir, DEEPEST) {
            return Some(limit);
        }
    }
    // What cannot be looked into is judged by what is gone from the file system, whoever took it.
    let gone = free_before.saturating_sub(free(rooms));
    (sum.hidden && gone > limits.disk.0).then_some(LimitName::Disk)
}

/// How much room is left where the first room lies.
fn free(rooms: &[PathBuf]) -> u64 {
    let seen = rooms.first().and_then(|room| rustix::fs::statvfs(room).ok());
    seen.map_or(0, |seen| seen.f_bavail.saturating_mul(seen.f_frsize))
}

struct Sum<'a> {
    bytes: u64,
    files: u64,
    /// Files with several names, so that each counts once.
    linked: HashSet<(u64, u64)>,
    /// Whether something could not be looked into.
    hidden: bool,
    limits: &'a Limits,
}

impl Sum<'_> {
    /// Adds what lies below. What cannot be read vanished meanwhile, or was made unreadable by who wrote it.
    fn add(&mut self, dir: &OwnedFd, depth: usize) -> Result<(), LimitName> {
        let Some(below) = depth.checked_sub(1) else { return Err(LimitName::Files) };
        let Ok(entries) = Dir::read_from(dir) else { return Ok(()) };
        for entry in entries.flatten() {
            let name = entry.file_name();
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            let Ok(seen) = statat(dir, name, AtFlags::SYMLINK_NOFOLLOW) else { continue };
            if seen.st_nlink > 1
                && FileType::from_raw_mode(seen.st_mode) != FileType::Directory
                && !self.linked.insert((seen.st_dev, seen.st_ino))
            {
                continue;
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
            if FileType::from_raw_mode(seen.st_mode) == FileType::Directory {
                let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                match openat(dir, name, flags, Mode::empty()) {
                    Ok(inner) => self.add(&inner, below)?,
                    Err(rustix::io::Errno::ACCESS) => self.hidden = true,
                    Err(_) => {}
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn limits() -> Limits {
        Limits { disk: Bytes(1 << 20), files: 10, ..Limits::default() }
    }

    #[test]
    fn bytes_and_files_are_added_up_over_all_rooms() {
        let (a, b) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let rooms = [a.path().to_owned(), b.path().to_owned()];
        fs::create_dir(a.path().join("deep")).unwrap();
        fs::write(a.path().join("deep/one"), vec![1; 600 << 10]).unwrap();
        assert_eq!(look(&rooms, &limits(), 0), None);
        // Another name of the same file is not another file.
        fs::hard_link(a.path().join("deep/one"), a.path().join("two")).unwrap();
        assert_eq!(look(&rooms, &limits(), 0), None);
        fs::write(b.path().join("three"), vec![1; 600 << 10]).unwrap();
        assert_eq!(look(&rooms, &limits(), 0), Some(LimitName::Disk));
        fs::remove_file(b.path().join("three")).unwrap();
        for number in 0..10 {
            fs::write(b.path().join(number.to_string()), "").unwrap();
        }
        assert_eq!(look(&rooms, &limits(), 0), Some(LimitName::Files));
    }

    #[test]
    fn a_link_to_the_whole_machine_is_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink("/", dir.path().join("all")).unwrap();
        assert_eq!(look(&[dir.path().to_owned()], &limits(), 0), None);
    }

    #[test]
    fn a_tree_without_an_end_is_too_much() {
        let dir = tempfile::tempdir().unwrap();
        let deep: PathBuf = std::iter::repeat_n("d", 300).collect();
        fs::create_dir_all(dir.path().join(deep)).unwrap();
        let many = Limits { files: 100_000, disk: Bytes(1 << 40), ..Limits::default() };
        assert_eq!(look(&[dir.path().to_owned()], &many, 0), Some(LimitName::Files));
    }
}
