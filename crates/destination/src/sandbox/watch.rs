//! Looks again and again at how much lies in the rooms and how many terminals are open, and kills what takes too much.
//!
//! A quota of the file system would be better, and needs privileges that herma does not have. Between two looks much
//! can be written; the size of one file is limited by the kernel.

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

/// The first look, and the shortest time between two.
const SOON: Duration = Duration::from_millis(500);
/// Looking at the rooms takes at most this part of the time: a large tree is looked at less often.
const SHARE: u32 = 20;
/// Nobody nests directories deeper than this; each level keeps one file open while it is looked at.
const DEEPEST: usize = 200;
/// How long a count may be impossible. Then the limit counts as passed.
const BLIND: Duration = Duration::from_secs(10);

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

/// The rooms of a job, opened before its command can change their modes.
pub(crate) struct Opened(Vec<Room>);

struct Room {
    dir: OwnedFd,
    before: Used,
}

impl Opened {
    /// Opens the rooms. To be done before the command starts.
    pub(crate) fn of(paths: &JobPaths) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let open = |path| {
            // Followed here only: the rooms are herma's own, what lies in them is not.
            let dir = openat(CWD, path, flags, Mode::empty())?;
            let before = Used::of(&dir)?;
            Ok(Room { dir, before })
        };
        let all = [Some(&paths.workspace), paths.engine_dir.as_ref()].into_iter().flatten();
        all.map(open).collect::<io::Result<_>>().map(Self)
    }
}

/// What a look found.
#[derive(Clone, Copy)]
pub(super) enum Found {
    Within,
    Over(LimitName),
    /// This limit could not be judged.
    Unseen(LimitName),
}

impl Watch {
    /// Watches the rooms and the terminals, and kills the process with this number, behind `first`, when there is too much.
    pub(crate) fn start(rooms: Opened, limits: &Limits, first: OwnedFd, number: i32) -> io::Result<Self> {
        let limits = *limits;
        let over = Arc::new(OnceLock::new());
        let (alive, ended) = channel();
        let found = Arc::clone(&over);
        thread::Builder::new().name("watch".to_owned()).spawn(move || {
            let (mut due, mut sight) = (Instant::now(), Sight::default());
            while ended.recv_timeout(SOON) == Err(RecvTimeoutError::Timeout) {
                let begun = Instant::now();
                let mut over = sight.terminals.judge(terminals::look(number, limits.terminals), begun);
                if over.is_none() && begun >= due {
                    over = sight.rooms.judge(look(&rooms.0, &limits), begun);
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

/// Since when each of the counts has been impossible.
#[derive(Default)]
struct Sight {
    terminals: Blind,
    rooms: Blind,
}

#[derive(Default)]
struct Blind(Option<Instant>);

impl Blind {
    /// The limit that counts as passed, if one does.
    fn judge(&mut self, found: Found, now: Instant) -> Option<LimitName> {
        match found {
            Found::Within => {
                self.0 = None;
                None
            }
            Found::Over(limit) => Some(limit),
            Found::Unseen(limit) => {
                let since = *self.0.get_or_insert(now);
                (now.duration_since(since) >= BLIND).then_some(limit)
            }
        }
    }
}

/// Compares what lies in the rooms with the limits.
fn look(rooms: &[Room], limits: &Limits) -> Found {
    let mut sum = Sum { bytes: 0, files: 0, linked: HashSet::new(), hidden: false, short: false, limits };
    for room in rooms {
        if let Err(limit) = sum.add_room(room) {
            return Found::Over(limit);
        }
    }
    if !sum.hidden {
        return Found::Within;
    }
    // Directories that cannot be read keep their modes, as a test may have made them so on purpose and depend on it.
    // They are judged by what the whole file system has more than before the start, whoever wrote it.
    for room in rooms {
        match room.before.growth(&room.dir) {
            Ok((bytes, _)) if bytes > limits.disk.0 => return Found::Over(LimitName::Disk),
            Ok((_, Some(files))) if files > limits.files => return Found::Over(LimitName::Files),
            Ok((_, Some(_))) => {}
            Ok((_, None)) | Err(_) => sum.short = true,
        }
    }
    if sum.short { Found::Unseen(LimitName::Files) } else { Found::Within }
}

/// What a file system holds.
struct Used {
    bytes: u64,
    /// Some file systems, such as btrfs, do not count.
    files: Option<u64>,
}

impl Used {
    fn of(dir: impl AsFd) -> io::Result<Self> {
        let seen = fstatvfs(dir)?;
        let bytes = seen.f_blocks.saturating_sub(seen.f_bfree).saturating_mul(seen.f_frsize);
        Ok(Self { bytes, files: (seen.f_files > 0).then(|| seen.f_files.saturating_sub(seen.f_ffree)) })
    }

    /// Bytes and files that have been added since.
    fn growth(&self, dir: impl AsFd) -> io::Result<(u64, Option<u64>)> {
        let now = Self::of(dir)?;
        let files = now.files.zip(self.files).map(|(now, before)| now.saturating_sub(before));
        Ok((now.bytes.saturating_sub(self.bytes), files))
    }
}

struct Sum<'a> {
    bytes: u64,
    files: u64,
    /// Files with several names, so that each counts once.
    linked: HashSet<(u64, u64)>,
    /// Whether something could not be looked at.
    hidden: bool,
    /// Whether that was for want of file descriptors, or the file system does not count files.
    short: bool,
    limits: &'a Limits,
}

impl Sum<'_> {
    fn add_room(&mut self, room: &Room) -> Result<(), LimitName> {
        // Not opened anew: the agent may have taken the right to do so.
        match rustix::io::fcntl_dupfd_cloexec(&room.dir, 0).and_then(Dir::new) {
            Ok(mut dir) => {
                dir.rewind();
                self.add(dir, DEEPEST)
            }
            Err(error) => {
                self.unseen(error);
                Ok(())
            }
        }
    }

    /// Adds what lies below.
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

    /// Counts one file; whether it is a directory.
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

    /// What is gone meanwhile needs no look; all else that cannot be seen may be anything.
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

    fn look(rooms: &[&Path], limits: &Limits) -> Option<LimitName> {
        let engine_dir = rooms.get(1).map(|&dir| dir.to_owned());
        let workspace = rooms[0].to_owned();
        let paths = JobPaths { workspace, engine_dir, router: None, egress: None, governance: None };
        match super::look(&Opened::of(&paths).unwrap().0, limits) {
            Found::Within => None,
            Found::Over(limit) => Some(limit),
            Found::Unseen(limit) => panic!("{limit:?} was not seen"),
        }
    }

    #[test]
    fn bytes_and_files_are_added_up_over_all_rooms() {
        let (a, b) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let rooms = [a.path(), b.path()];
        fs::create_dir(a.path().join("deep")).unwrap();
        fs::write(a.path().join("deep/one"), vec![1; 600 << 10]).unwrap();
        assert_eq!(look(&rooms, &limits()), None);
        // Another name of the same file is not another file.
        fs::hard_link(a.path().join("deep/one"), a.path().join("two")).unwrap();
        assert_eq!(look(&rooms, &limits()), None);
        fs::write(b.path().join("three"), vec![1; 600 << 10]).unwrap();
        assert_eq!(look(&rooms, &limits()), Some(LimitName::Disk));
        fs::remove_file(b.path().join("three")).unwrap();
        for number in 0..10 {
            fs::write(b.path().join(number.to_string()), "").unwrap();
        }
        assert_eq!(look(&rooms, &limits()), Some(LimitName::Files));
    }

    #[test]
    fn a_link_to_the_whole_machine_is_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink("/", dir.path().join("all")).unwrap();
        assert_eq!(look(&[dir.path()], &limits()), None);
    }

    #[test]
    fn a_tree_without_an_end_is_too_much() {
        let dir = tempfile::tempdir().unwrap();
        let deep: PathBuf = std::iter::repeat_n("d", 300).collect();
        fs::create_dir_all(dir.path().join(deep)).unwrap();
        let many = Limits { files: 100_000, disk: Bytes(1 << 40), ..Limits::default() };
        assert_eq!(look(&[dir.path()], &many), Some(LimitName::Files));
    }

    #[test]
    fn a_count_that_stays_impossible_is_a_passed_limit() {
        let (mut blind, start) = (Blind::default(), Instant::now());
        let unseen = || Found::Unseen(LimitName::Files);
        assert_eq!(blind.judge(unseen(), start), None);
        assert_eq!(blind.judge(unseen(), start + BLIND / 2), None);
        assert_eq!(blind.judge(Found::Within, start + BLIND / 2), None);
        assert_eq!(blind.judge(unseen(), start + BLIND), None, "it was seen in between");
        assert_eq!(blind.judge(unseen(), start + BLIND * 2), Some(LimitName::Files));
    }
}
