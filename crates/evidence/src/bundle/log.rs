//! A log of the bundle: redacted, decoded lossily and capped while it is written.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};

use herma_core::Digest;
use sha2::{Digest as _, Sha256};

use super::{Bundle, WriteError};
use crate::redact::{Redactor, Stream};

/// Writes one log of a bundle. It grows in place, so that what was written is still there after a crash.
#[derive(Debug)]
pub struct LogWriter {
    bundle: Bundle,
    name: String,
    file: File,
    stream: Stream,
    cap: u64,
    size: u64,
    left_out: u64,
    hash: Sha256,
    finished: bool,
    /// The error of the first write that failed.
    failed: Option<io::ErrorKind>,
}

impl LogWriter {
    pub(super) fn open(bundle: Bundle, name: &str, redactor: Redactor, cap: u64) -> io::Result<Self> {
        bundle.make_parent(name)?;
        let file = OpenOptions::new().append(true).create_new(true).open(bundle.path(name))?;
        Ok(Self {
            bundle,
            name: name.to_owned(),
            file,
            stream: Stream::new(redactor),
            cap,
            size: 0,
            left_out: 0,
            hash: Sha256::new(),
            finished: false,
            failed: None,
        })
    }

    /// Writes what is still held back, says what was left out, makes the file durable and records its digest. It returns
    /// an error if any write failed: the log lacks a part then.
    pub fn finish(mut self) -> Result<(), WriteError> {
        self.close().map_err(|e| WriteError::new(&self.name, e))
    }

    fn close(&mut self) -> io::Result<()> {
        self.finished = true;
        let mut out = Vec::new();
        let Self { stream, cap, size, left_out, .. } = self;
        stream.finish(&mut |piece| keep(piece, &mut out, *cap, *size, left_out));
        if self.left_out > 0 {
            let note =
                format!("\n[herma left out {} bytes: this log ends at {} bytes]\n", self.left_out, self.cap);
            out.extend_from_slice(note.as_bytes());
        }
        let last = self.put(&out);
        self.file.sync_all()?;
        let digest = Digest::from_bytes(self.hash.clone().finalize().into());
        self.bundle.record(&self.name, digest, self.size);
        last?;
        self.failed.map_or(Ok(()), |kind| Err(kind.into()))
    }

    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        if let Err(error) = self.file.write_all(bytes) {
            self.failed.get_or_insert(error.kind());
            // A part of the bytes may be in the file; the digest must be that of the file.
            self.file.set_len(self.size)?;
            return Err(error);
        }
        self.hash.update(bytes);
        self.size += bytes.len() as u64;
        Ok(())
    }
}

/// Keeps a piece if all pieces before it fitted and it fits too: a piece is never cut, since half of one could hide
/// from the scanner what the whole one shows.
fn keep(piece: &str, out: &mut Vec<u8>, cap: u64, written: u64, left_out: &mut u64) {
    let after = written + (out.len() + piece.len()) as u64;
    if *left_out == 0 && after <= cap {
        out.extend_from_slice(piece.as_bytes());
    } else {
        *left_out += piece.len() as u64;
    }
}

impl Write for LogWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut out = Vec::new();
        let Self { stream, cap, size, left_out, .. } = self;
        stream.push(bytes, &mut |piece| keep(piece, &mut out, *cap, *size, left_out));
        self.put(&out)?;
        Ok(bytes.len())
    }

    /// Does nothing: what is held back may be the first half of a secret.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for LogWriter {
    fn drop(&mut self) {
        if !self.finished {
            // A log that was forgotten is still evidence; if it cannot be closed, attesting the bundle says so.
            let _ = self.close();
        }
    }
}
