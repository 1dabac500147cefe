//! herma's home: where keys, store, runs and bundles lie.

mod ownership;
mod place;
mod removal;

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use herma_core::RunId;
use herma_core::approval::ApprovalId;
pub use ownership::{HomeError, check_home};
pub use place::{HomePlace, MARKER, MARKER_TEXT};
use removal::remove_any;
pub(crate) use removal::remove_tree;
use rustix::fs::{FlockOperation, IFlags, flock, ioctl_getflags, ioctl_setflags};
use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};

use crate::file_reading::{open_directory, open_with, read_regular};

/// What is set aside so that a run can close itself on a full disk.
const RESERVE_BYTES: usize = 2 << 20;
/// The largest mark of a run or an approval that is read.
const MAX_SHORT_BYTES: u64 = 4 << 10;

/// herma's home directory. It is its owner's alone, and with it everything below.
#[derive(Clone, Debug)]
pub struct Home {
    root: PathBuf,
}

/// The directories of one run.
#[derive(Clone, Debug)]
pub struct RunDirs {
    root: PathBuf,
}

/// A run that is under way. The lock dies with the process, so an active run that can be locked is an orphan.
#[derive(Debug)]
pub struct ActiveRun {
    file: PathBuf,
    _lock: File,
}

impl Home {
    /// Opens the home, making what is missing. A directory that is in use for something else is refused.
    pub fn open(place: &HomePlace) -> Result<Self, HomeError> {
        place.prepare()?;
        let root = place.path();
        Self::make(root).map_err(|cause| HomeError::Io { home: root.to_owned(), cause })
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
        home.try_to_write()?;
        spread_out(&root.join("runs"));
        home.refill_reserve();
        Ok(home)
    }

    /// Where the admissions lie.
    #[must_use]
    pub fn admissions(&self) -> PathBuf {
        self.root.join("admissions")
    }

    /// Where the trees of installed agents lie, each named by its digest.
    #[must_use]
    pub fn installed(&self) -> PathBuf {
        self.root.join("installed")
    }

    /// Where the lists and grants of egress lie.
    #[must_use]
    pub fn egress(&self) -> PathBuf {
        self.root.join("egress")
    }

    /// The directory itself.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Where the installation's keys lie.
    #[must_use]
    pub fn keys(&self) -> PathBuf {
        self.root.join("keys")
    }

    /// Where the approvers' records and locked keys lie.
    #[must_use]
    pub fn approvers(&self) -> PathBuf {
        self.keys().join("approvers")
    }

    /// The store's file.
    #[must_use]
    pub fn store(&self) -> PathBuf {
        self.root.join("store.db")
    }

    /// The directories of a run.
    #[must_use]
    pub fn run(&self, id: RunId) -> RunDirs {
        RunDirs { root: self.root.join("runs").join(id.to_string()) }
    }

    /// Marks a run as under way, durably, and locks it for this process.
    pub fn activate(&self, id: RunId) -> io::Result<ActiveRun> {
        // Until it is locked, a mark looks like that of a process that is gone.
        let _nobody_looks = self.lock_active()?;
        let file = self.root.join("active").join(id.to_string());
        let mut lock = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&file)?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive)?;
        write!(lock, "{}", rustix::process::getpid())?;
        sync_dir(&self.root.join("active"))?;
        Ok(ActiveRun { file, _lock: lock })
    }

    /// The runs whose process is gone, each locked for this process.
    pub fn orphans(&self) -> io::Result<Vec<(RunId, ActiveRun)>> {
        let mut orphans = Vec::new();
        let _nobody_starts = self.lock_active()?;
        for entry in fs::read_dir(self.root.join("active"))? {
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
            // Whoever holds the lock is alive; whoever removed the file since has closed the run.
            if take_over(&lock, &file) && file.exists() {
                orphans.push((id, ActiveRun { file, _lock: lock }));
            }
        }
        orphans.sort_by_key(|(id, _)| *id);
        Ok(orphans)
    }

    /// Marks an approval as used by a run, durably and once: the store can be put back to what it was before, a mark
    /// that is there stays. Gives the run that was first where another one was.
    pub(crate) fn mark_used(&self, approval: ApprovalId, run: RunId) -> io::Result<Result<(), String>> {
        let dir = self.root.join("consumed");
        DirBuilder::new().recursive(true).mode(0o700).create(&dir)?;
        let file = dir.join(approval.to_string());
        // Linked when it is whole: whoever finds it there can read who was first.
        let mut mark = tempfile::NamedTempFile::new_in(&dir)?;
        write!(mark, "{run}")?;
        mark.as_file().sync_all()?;
        match fs::hard_link(mark.path(), &file) {
            Ok(()) => sync_dir(&dir).map(Ok),
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => Ok(Err(self.used_by(approval))),
            Err(e) => Err(e),
        }
    }

    /// The run that an approval was used by, if one did.
    pub(crate) fn is_used(&self, approval: ApprovalId) -> Option<String> {
        let there = fs::symlink_metadata(self.root.join("consumed").join(approval.to_string())).is_ok();
        there.then(|| self.used_by(approval))
    }

    /// The run whose mark says that it used an approval; none where there is no mark, or none that can be read.
    pub(crate) fn marked_by(&self, approval: ApprovalId) -> Option<RunId> {
        read_short(&self.root.join("consumed").join(approval.to_string()))?.parse().ok()
    }

    /// The approvals that are marked as used by this run.
    pub(crate) fn approvals_marked_by(&self, run: RunId) -> Vec<ApprovalId> {
        let marks = fs::read_dir(self.root.join("consumed")).into_iter().flatten().flatten();
        let ids = marks.filter_map(|mark| mark.file_name().to_str()?.parse().ok());
        ids.filter(|id| self.marked_by(*id) == Some(run)).collect()
    }

    fn used_by(&self, approval: ApprovalId) -> String {
        let run = self.marked_by(approval);
        run.map_or_else(|| "another run".to_owned(), |run| format!("run {run}"))
    }

    /// Keeps others from marking runs and from looking for orphans until it is dropped.
    fn lock_active(&self) -> io::Result<File> {
        let dir = open_directory(&self.root.join("active"))?;
        flock(&dir, FlockOperation::LockExclusive)?;
        Ok(dir)
    }

    /// Gives the reserve back to the disk, so that a run can still close itself.
    pub fn release_reserve(&self) {
        let _ = fs::remove_file(self.root.join("reserve"));
    }

    /// What the digest of herma's own program was.
    #[must_use]
    pub fn own_digest(&self) -> PathBuf {
        self.root.join("own-digest.json")
    }

    /// A home that cannot be written is found out here, where the message can name it.
    fn try_to_write(&self) -> io::Result<()> {
        // Always the same name: one that a killed herma left is taken away by the next.
        let file = self.root.join(".writable");
        create_in_place(&file)?;
        match fs::remove_file(file) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => Err(e),
            _ => Ok(()),
        }
    }

    /// Sets the reserve aside again. On a full disk there is none, and writing fails soon enough to say so.
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

impl RunDirs {
    /// Makes the run's directory.
    pub(crate) fn create(&self) -> io::Result<()> {
        DirBuilder::new().mode(0o700).create(&self.root)?;
        DirBuilder::new().mode(0o700).create(self.bundle())?;
        sync_dir(self.root.parent().unwrap_or(&self.root))
    }

    /// The run's directory itself.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The evidence.
    #[must_use]
    pub fn bundle(&self) -> PathBuf {
        self.root.join("bundle")
    }

    /// Where the agent works.
    #[must_use]
    pub fn workspace(&self) -> PathBuf {
        self.root.join("workspace")
    }

    /// The engine's own directory: its home, configuration and prompt.
    #[must_use]
    pub fn engine(&self) -> PathBuf {
        self.root.join("engine")
    }

    /// herma's own git directory.
    #[must_use]
    pub fn git(&self) -> PathBuf {
        self.root.join("git")
    }

    /// Where the run's router records its calls and listens. The agent sees the socket only.
    #[must_use]
    pub fn router(&self) -> PathBuf {
        self.root.join("router")
    }

    /// Where the run's egress proxy listens. The agent sees the socket only.
    #[must_use]
    pub fn egress(&self) -> PathBuf {
        self.root.join("egress")
    }

    /// Where the run's engine asks about tool calls.
    #[must_use]
    pub fn governance(&self) -> PathBuf {
        self.root.join("governance")
    }

    /// What the confinement probes work in.
    #[must_use]
    pub fn probes(&self) -> PathBuf {
        self.root.join("probes")
    }

    /// The fresh checkout that verification runs on.
    #[must_use]
    pub fn verification(&self) -> PathBuf {
        self.root.join("verification")
    }

    /// The fresh checkout that it runs on once more, with the tests as they were.
    #[must_use]
    pub fn old_tests(&self) -> PathBuf {
        self.root.join("old-tests")
    }

    /// The throw-away repository of a stage 4 run.
    #[must_use]
    pub fn disposable(&self) -> PathBuf {
        self.root.join("disposable")
    }

    /// What a recovery needs to know: the plan of the run.
    #[must_use]
    pub(crate) fn plan(&self) -> PathBuf {
        self.root.join("plan.json")
    }

    /// What a recovery needs to know: what was found so far.
    #[must_use]
    pub(crate) fn facts(&self) -> PathBuf {
        self.root.join("facts.jsonl")
    }

    /// What is kept of the agent's session.
    #[must_use]
    pub(crate) fn session(&self) -> PathBuf {
        self.root.join("session")
    }

    /// Removes everything but the bundle and the session, and the workspace too unless it is kept; and the plan not yet: until
    /// it is forgotten the run can be closed again.
    pub(crate) fn clear(&self, keep_workspace: bool) -> io::Result<()> {
        for entry in fs::read_dir(&self.root)? {
            let path = entry?.path();
            let kept = path == self.bundle()
                || path == self.session()
                || (keep_workspace && (path == self.workspace() || path == self.disposable()));
            if !kept && path != self.plan() {
                remove_any(&path)?;
            }
        }
        Ok(())
    }

    /// Removes the plan: the run is closed, and the store knows of it.
    pub(crate) fn forget_plan(&self) -> io::Result<()> {
        remove_any(&self.plan())
    }
}

impl ActiveRun {
    /// The run is closed: nothing is left to recover.
    pub(crate) fn done(self) -> io::Result<()> {
        fs::remove_file(&self.file)?;
        sync_dir(self.file.parent().unwrap_or(Path::new("/")))
    }
}

/// Takes the lock of a process that is gone. A child that it was just starting holds the lock too, until it has become
/// another program; that takes a moment.
fn take_over(lock: &File, file: &Path) -> bool {
    let give_up = Instant::now() + Duration::from_secs(5);
    loop {
        if flock(lock, FlockOperation::NonBlockingLockExclusive).is_ok() {
            return true;
        }
        let owner = read_short(file).and_then(|text| text.parse().ok()).and_then(Pid::from_raw);
        let gone = owner.is_some_and(|pid| test_kill_process(pid) == Err(Errno::SRCH));
        if !gone || Instant::now() > give_up {
            return false;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Opens a file for writing, making it where it is missing: no link is followed.
fn create_in_place(file: &Path) -> io::Result<File> {
    open_with(OpenOptions::new().write(true).create(true).truncate(false).mode(0o600), file)
        .map_err(|e| io::Error::new(e.kind(), format!("{}: {e}", file.display())))
}

/// Tells the file system that what lies in the directory has nothing to do with each other. ext4 would put each run's files
/// where those of the run before were removed a moment ago, and without a journal it looks at every one of these for each
/// new file: a run took twice as long. Others do not know the hint, and do as they please.
pub fn spread_out(dir: &Path) {
    let Ok(dir) = open_directory(dir) else { return };
    if let Ok(flags) = ioctl_getflags(&dir)
        && !flags.contains(IFlags::TOPDIR)
    {
        let _ = ioctl_setflags(&dir, flags | IFlags::TOPDIR);
    }
}

/// Makes a change of directory entries durable.
pub(crate) fn sync_dir(dir: &Path) -> io::Result<()> {
    open_directory(dir)?.sync_all()
}

/// The text of a small file of herma's own; none where it is something else.
fn read_short(file: &Path) -> Option<String> {
    read_regular(file, MAX_SHORT_BYTES).ok().and_then(|bytes| String::from_utf8(bytes).ok())
}

/// Writes a file that is either there in full or not at all.
pub(crate) fn write_durably(file: &Path, bytes: &[u8]) -> io::Result<()> {
    let dir = file.parent().unwrap_or(Path::new("/"));
    let mut temp = tempfile::NamedTempFile::new_in(dir)?;
    temp.write_all(bytes)?;
    temp.as_file().sync_all()?;
    temp.persist(file).map_err(|e| e.error)?;
    sync_dir(dir)
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
