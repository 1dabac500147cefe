//! The limits of a walk over a tree: entries, apparent bytes, time and cancellation.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use herma_core::visible::visible_line;

/// The apparent size of all files of a layer. A sparse file occupies little until a view copies it.
pub const MAX_TREE_BYTES: u64 = 64 << 30;
/// The number of files, links and directories of a layer.
pub const MAX_TREE_ENTRIES: u64 = 2_000_000;

/// The bytes of all their paths. herma keeps paths in memory while it looks at a layer.
pub const MAX_TREE_PATH_BYTES: u64 = 512 << 20;

/// How much of a path an error names.
const MAX_PATH_CHARS: usize = 240;

/// The limits of one walk over a tree.
#[derive(Clone, Copy)]
pub struct TreeLimits<'a> {
    /// The apparent size of all files. A hard link counts like a file of its own, because a view copies each.
    pub max_bytes: u64,
    /// The number of entries.
    pub max_entries: u64,
    /// The bytes of the paths of all entries.
    pub max_path_bytes: u64,
    /// When the walk fails.
    pub deadline: Option<Instant>,
    /// Whether the walk is to end early.
    pub is_cancelled: &'a (dyn Fn() -> bool + Sync),
}

/// A tree could not be read, copied or captured.
#[derive(Debug, thiserror::Error)]
pub enum TreeError {
    /// A file could not be read or written.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The walk was cancelled.
    #[error("it was cancelled")]
    Cancelled,
    /// The deadline passed.
    #[error(
        "there was no time left to read or copy its files: raise the time limit, or let the commands leave fewer files"
    )]
    TimedOut,
    /// There are too many entries.
    #[error(
        "it has more than {max} files and directories; the first above the limit is `{}`: remove what the tests do not need",
        shown(path)
    )]
    TooManyEntries {
        /// The first entry above the limit.
        path: PathBuf,
        /// The limit.
        max: u64,
    },
    /// The paths are too long together.
    #[error(
        "the paths of its files have more than {max} bytes together; the first above the limit is `{}`: remove what the tests do \
         not need",
        shown(path)
    )]
    TooLongPaths {
        /// The first entry above the limit.
        path: PathBuf,
        /// The limit.
        max: u64,
    },
    /// The files are too large together.
    #[error(
        "its files have more than {max} bytes together, holes and hard links included; the first above the limit is `{}`: \
         remove what the tests do not need",
        shown(path)
    )]
    TooManyBytes {
        /// The first file above the limit.
        path: PathBuf,
        /// The limit.
        max: u64,
    },
}

impl From<TreeError> for io::Error {
    fn from(error: TreeError) -> Self {
        match error {
            TreeError::Io(error) => error,
            TreeError::Cancelled => Self::from(io::ErrorKind::Interrupted),
            TreeError::TimedOut => Self::new(io::ErrorKind::TimedOut, error),
            TreeError::TooManyEntries { .. }
            | TreeError::TooLongPaths { .. }
            | TreeError::TooManyBytes { .. } => Self::other(error),
        }
    }
}

impl Default for TreeLimits<'_> {
    fn default() -> Self {
        Self {
            max_bytes: MAX_TREE_BYTES,
            max_entries: MAX_TREE_ENTRIES,
            max_path_bytes: MAX_TREE_PATH_BYTES,
            deadline: None,
            is_cancelled: &|| false,
        }
    }
}

impl std::fmt::Debug for TreeLimits<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { max_bytes, max_entries, max_path_bytes, deadline, is_cancelled: _ } = self;
        f.debug_struct("TreeLimits")
            .field("max_bytes", max_bytes)
            .field("max_entries", max_entries)
            .field("max_path_bytes", max_path_bytes)
            .field("deadline", deadline)
            .finish_non_exhaustive()
    }
}

impl TreeLimits<'_> {
    /// An error if the walk was cancelled or took too long.
    pub(crate) fn check(&self) -> Result<(), TreeError> {
        if (self.is_cancelled)() {
            return Err(TreeError::Cancelled);
        }
        match self.deadline {
            Some(deadline) if Instant::now() >= deadline => Err(TreeError::TimedOut),
            _ => Ok(()),
        }
    }
}

/// Counts the entries and bytes of one walk against its limits, for all its threads.
#[derive(Debug)]
pub(crate) struct TreeCounter<'a> {
    limits: TreeLimits<'a>,
    entries: AtomicU64,
    path_bytes: AtomicU64,
    bytes: AtomicU64,
}

impl<'a> TreeCounter<'a> {
    pub(crate) fn new(limits: TreeLimits<'a>) -> Self {
        Self { limits, entries: AtomicU64::new(0), path_bytes: AtomicU64::new(0), bytes: AtomicU64::new(0) }
    }

    /// Counts an entry whose path has so many bytes; `path` names it in an error.
    pub(crate) fn add_entry(
        &self,
        path_bytes: usize,
        path: impl FnOnce() -> PathBuf,
    ) -> Result<(), TreeError> {
        self.limits.check()?;
        let before = self.entries.fetch_add(1, Ordering::Relaxed);
        let max = self.limits.max_entries;
        if before >= max {
            return Err(TreeError::TooManyEntries { path: path(), max });
        }
        // At most 2,000,000 times 4,096: no sum of them overflows.
        let before = self.path_bytes.fetch_add(path_bytes as u64, Ordering::Relaxed);
        let max = self.limits.max_path_bytes;
        if before.saturating_add(path_bytes as u64) > max {
            return Err(TreeError::TooLongPaths { path: path(), max });
        }
        Ok(())
    }

    /// Counts the apparent size of a file.
    pub(crate) fn add_bytes(&self, bytes: u64, path: impl FnOnce() -> PathBuf) -> Result<(), TreeError> {
        let sum = |before: u64| Some(before.saturating_add(bytes));
        let (Ok(before) | Err(before)) = self.bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, sum);
        let max = self.limits.max_bytes;
        if before.saturating_add(bytes) > max {
            return Err(TreeError::TooManyBytes { path: path(), max });
        }
        Ok(())
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }
}

/// A path that commands chose, so that it cannot deceive a reader.
fn shown(path: &Path) -> String {
    let text = visible_line(&path.to_string_lossy());
    let mut short: String = text.chars().take(MAX_PATH_CHARS).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short
}
