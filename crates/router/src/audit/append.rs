//! A file that grows by whole lines.

use std::fs::File;
use std::io::{self, Write as _};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// A file that grows by whole lines. Only one thread writes at a time: the caller holds the audit's lock.
#[derive(Debug)]
pub(super) struct Append {
    name: &'static str,
    file: File,
    size: AtomicU64,
    /// Whether the file ends with half a line that could not be removed.
    is_torn: AtomicBool,
}

impl Append {
    /// Appends after `size` bytes. A torn line after them is cut.
    pub(super) fn new(name: &'static str, file: File, size: u64) -> io::Result<Self> {
        if file.metadata()?.len() != size {
            file.set_len(size)?;
        }
        Ok(Self { name, file, size: AtomicU64::new(size), is_torn: AtomicBool::new(false) })
    }

    /// Appends lines with their newlines, in one write, whole or not at all.
    pub(super) fn lines(&self, lines: &[u8]) -> io::Result<()> {
        if self.is_torn.load(Ordering::Acquire) {
            return Err(io::Error::other("the file ends with half a line"));
        }
        let size = self.size.load(Ordering::Acquire);
        if let Err(cause) = (&self.file).write_all(lines) {
            // Half a line must not stay: the next one would be glued to it.
            self.is_torn.store(self.file.set_len(size).is_err(), Ordering::Release);
            return Err(cause);
        }
        self.size.store(size + lines.len() as u64, Ordering::Release);
        Ok(())
    }

    /// Takes everything away.
    pub(super) fn clear(&self) -> io::Result<()> {
        self.file.set_len(0)?;
        self.size.store(0, Ordering::Release);
        Ok(())
    }

    pub(super) fn file(&self) -> &File {
        &self.file
    }

    pub(super) fn sync(&self) -> Result<(), (&'static str, io::Error)> {
        self.file.sync_data().map_err(|cause| (self.name, cause))
    }
}
