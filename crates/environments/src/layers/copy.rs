//! Copies a layer's tree into a view: by reflink where the file system can, else byte by byte. Links stay links, and nothing is
//! written through one.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::{
    DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _, symlink,
};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use rustix::fs::{Timespec, Timestamps, copy_file_range, futimens, ioctl_ficlone};

use super::limits::{TreeError, TreeLimits};

/// How much of a file is copied before the limits are checked again.
const CHUNK_BYTES: u64 = 64 << 20;

/// A directory with at least so many entries, or so many bytes, is mounted where a view can have mounts. Others cost less as a copy.
pub(super) const MIN_MOUNT_ENTRIES: u64 = 64;
pub(super) const MIN_MOUNT_BYTES: u64 = 4 << 20;
/// The most mounts of a view: each one slows every start of a job.
const MAX_MOUNTS: usize = 24;

/// How the files of a view came about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyKind {
    /// They share their blocks with the layer until one is written.
    Reflinked,
    /// Their bytes were copied.
    Copied,
}

/// Copies everything below `from` to the directory `to`. Entries of `to` that exist win and keep their modes; a directory of `from`
/// whose place is taken by something else is passed over, as are sockets, pipes and devices.
pub fn copy_tree(from: &Path, to: &Path) -> io::Result<CopyKind> {
    Ok(copy_tree_within(from, to, &TreeLimits::default())?)
}

/// The same, until the deadline or a cancellation of `limits`.
pub fn copy_tree_within(from: &Path, to: &Path, limits: &TreeLimits<'_>) -> Result<CopyKind, TreeError> {
    if fs::symlink_metadata(to).is_ok_and(|meta| !meta.is_dir()) {
        return Err(
            io::Error::new(io::ErrorKind::NotADirectory, "the target of a copy is no directory").into()
        );
    }
    Copy { limits, mounts: None, made: Vec::new() }.run(from, to)
}

/// The same, but each large directory that `to` lacks is made empty, for a mount. Returns their paths below both.
pub(super) fn copy_around_mounts(
    from: &Path,
    to: &Path,
    limits: &TreeLimits<'_>,
) -> Result<Vec<PathBuf>, TreeError> {
    let mut copy = Copy { limits, mounts: Some(Vec::new()), made: Vec::new() };
    copy.run(from, to)?;
    let below = |mount: PathBuf| mount.strip_prefix(to).map(Path::to_owned).map_err(io::Error::other);
    Ok(copy.mounts.into_iter().flatten().map(below).collect::<Result<_, _>>()?)
}

/// Whether a mount of the directory costs less than a copy. Reads no more of it than it takes to know.
pub(super) fn is_large(dir: &Path) -> io::Result<bool> {
    let (mut entries, mut bytes, mut pending) = (0, 0, vec![dir.to_owned()]);
    while let Some(dir) = pending.pop() {
        for entry in fs::read_dir(dir)? {
            let entry = entry?;
            let meta = entry.metadata()?;
            (entries, bytes) = (entries + 1, meta.len().saturating_add(bytes));
            if entries >= MIN_MOUNT_ENTRIES || bytes >= MIN_MOUNT_BYTES {
                return Ok(true);
            }
            if meta.is_dir() {
                pending.push(entry.path());
            }
        }
    }
    Ok(false)
}

/// One copy, in two passes: directories are made first, and then filled on every core.
struct Copy<'a> {
    limits: &'a TreeLimits<'a>,
    /// Directories that are left to mounts, where the view can have some.
    mounts: Option<Vec<PathBuf>>,
    /// The directories to fill.
    made: Vec<(PathBuf, PathBuf)>,
}

impl Copy<'_> {
    fn run(&mut self, from: &Path, to: &Path) -> Result<CopyKind, TreeError> {
        self.make_directories(from, to)?;
        let filling = Filling { made: &self.made, ..Filling::default() };
        std::thread::scope(|scope| {
            let cores = std::thread::available_parallelism().map_or(1, usize::from);
            let others: Vec<_> =
                (1..cores.min(self.made.len())).map(|_| scope.spawn(|| filling.fill(&|| Ok(())))).collect();
            // This thread alone asks whether to go on, and the others stop with it.
            let own = filling.fill(&|| self.limits.check());
            let ended = others.into_iter().map(|other| {
                other.join().unwrap_or_else(|_| Err(io::Error::other("a thread that copies panicked").into()))
            });
            own.and_then(|()| ended.collect::<Result<(), TreeError>>())
        })?;
        Ok(if filling.has_copied.into_inner() { CopyKind::Copied } else { CopyKind::Reflinked })
    }

    fn make_directories(&mut self, from: &Path, to: &Path) -> Result<(), TreeError> {
        let mut pending = vec![(from.to_owned(), to.to_owned())];
        while let Some((from, to)) = pending.pop() {
            self.limits.check()?;
            match fs::symlink_metadata(&to) {
                // The mode of a directory of the checkout counts as a change of a tracked file.
                Ok(meta) if meta.is_dir() => {}
                // A later base can track a file here, whose checkout wins over the layer.
                Ok(_) => continue,
                Err(_) => {
                    fs::DirBuilder::new().mode(0o700).create(&to)?;
                    set_mode_of(&from, &to)?;
                    if self.leave_to_mount(&from, &to)? {
                        continue;
                    }
                }
            }
            for entry in fs::read_dir(&from)? {
                let entry = entry?;
                if entry.file_type()?.is_dir() {
                    pending.push((entry.path(), to.join(entry.file_name())));
                }
            }
            self.made.push((from, to));
        }
        Ok(())
    }

    fn leave_to_mount(&mut self, from: &Path, to: &Path) -> Result<bool, TreeError> {
        match &mut self.mounts {
            Some(mounts) if mounts.len() < MAX_MOUNTS && is_large(from)? => {
                mounts.push(to.to_owned());
                Ok(true)
            }
            _ => Ok(false),
        }
    }
}

/// The second pass, shared by its threads.
#[derive(Default)]
struct Filling<'a> {
    made: &'a [(PathBuf, PathBuf)],
    next: AtomicUsize,
    /// Whether a thread failed.
    has_failed: AtomicBool,
    /// Whether the file system could not reflink.
    has_copied: AtomicBool,
}

impl Filling<'_> {
    fn fill(&self, check: &dyn Fn() -> Result<(), TreeError>) -> Result<(), TreeError> {
        let mut filled = Ok(());
        while let (Ok(()), Some((from, to))) =
            (&filled, self.made.get(self.next.fetch_add(1, Ordering::Relaxed)))
        {
            filled = self.directory(from, to, check);
        }
        self.has_failed.fetch_or(filled.is_err(), Ordering::Relaxed);
        filled
    }

    fn directory(
        &self,
        from: &Path,
        to: &Path,
        check: &dyn Fn() -> Result<(), TreeError>,
    ) -> Result<(), TreeError> {
        for entry in fs::read_dir(from)? {
            check()?;
            // The thread that failed has the error.
            if self.has_failed.load(Ordering::Relaxed) {
                return Ok(());
            }
            let entry = entry?;
            let (source, target, kind) = (entry.path(), to.join(entry.file_name()), entry.file_type()?);
            let copied = match () {
                () if kind.is_symlink() => {
                    fs::read_link(&source).and_then(|to| symlink(to, &target)).map_err(Into::into)
                }
                () if kind.is_file() => self.file(&source, &target, check),
                () => Ok(()),
            };
            match copied {
                // The checkout's own file wins.
                Err(TreeError::Io(error)) if error.kind() == io::ErrorKind::AlreadyExists => {}
                copied => copied?,
            }
        }
        Ok(())
    }

    fn file(
        &self,
        from: &Path,
        to: &Path,
        check: &dyn Fn() -> Result<(), TreeError>,
    ) -> Result<(), TreeError> {
        let source = File::open(from)?;
        let meta = source.metadata()?;
        let mode = meta.permissions().mode() & 0o777;
        let mut target = OpenOptions::new().write(true).create_new(true).mode(mode | 0o200).open(to)?;
        if self.has_copied.load(Ordering::Relaxed) || ioctl_ficlone(&target, &source).is_err() {
            self.has_copied.store(true, Ordering::Relaxed);
            copy_bytes(&source, &mut target, meta.len(), check)?;
        }
        // Build tools compare times: a copy that looks newer would be built again.
        let at = |seconds, nanoseconds| Timespec { tv_sec: seconds, tv_nsec: nanoseconds };
        let times = Timestamps {
            last_access: at(meta.atime(), meta.atime_nsec()),
            last_modification: at(meta.mtime(), meta.mtime_nsec()),
        };
        futimens(&target, &times).map_err(io::Error::from)?;
        target.set_permissions(fs::Permissions::from_mode(mode))?;
        Ok(())
    }
}

/// Copies within the kernel where it can, in as few calls as the size needs.
fn copy_bytes(
    source: &File,
    target: &mut File,
    size: u64,
    check: &dyn Fn() -> Result<(), TreeError>,
) -> Result<(), TreeError> {
    let mut left = size;
    while left > 0 {
        let chunk = usize::try_from(left.min(CHUNK_BYTES)).unwrap_or(usize::MAX);
        match copy_file_range(source, None, &*target, None, chunk) {
            Ok(0) | Err(_) => break,
            Ok(copied) => left -= copied.min(chunk) as u64,
        }
        check()?;
    }
    // The kernel cannot copy between all file systems.
    while left > 0 && io::copy(&mut source.take(CHUNK_BYTES), target)? == CHUNK_BYTES {
        check()?;
    }
    Ok(())
}

/// Gives a directory the mode of another one.
pub(super) fn set_mode_of(from: &Path, to: &Path) -> Result<(), TreeError> {
    let mode = fs::metadata(from)?.permissions().mode() | 0o700;
    Ok(fs::set_permissions(to, fs::Permissions::from_mode(mode & 0o777))?)
}
