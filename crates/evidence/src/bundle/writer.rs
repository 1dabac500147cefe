//! A file that appears in the bundle when it is complete.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;

use herma_core::Digest;
use sha2::{Digest as _, Sha256};

use super::{Bundle, WriteError};

/// The name prefix of unfinished files.
pub(super) const TEMP_PREFIX: &str = ".unfinished-";

/// Writes one file of a bundle. Without `finish` nothing appears.
#[derive(Debug)]
pub struct ArtifactWriter {
    bundle: Bundle,
    name: String,
    temp: PathBuf,
    file: BufWriter<File>,
    hash: Sha256,
    size: u64,
    finished: bool,
}

impl ArtifactWriter {
    pub(super) fn open(bundle: Bundle, name: &str) -> io::Result<Self> {
        bundle.make_parent(name)?;
        let path = bundle.path(name);
        let leaf = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let temp = path.with_file_name(format!("{TEMP_PREFIX}{leaf}"));
        let file = OpenOptions::new().write(true).create_new(true).open(&temp)?;
        let file = BufWriter::with_capacity(64 << 10, file);
        Ok(Self { bundle, name: name.to_owned(), temp, file, hash: Sha256::new(), size: 0, finished: false })
    }

    /// Makes the file durable, gives it its name and records its digest.
    pub fn finish(mut self) -> Result<(), WriteError> {
        self.publish().map_err(|e| WriteError::new(&self.name, e))?;
        let digest = Digest::from_bytes(self.hash.clone().finalize().into());
        self.bundle.record(&self.name, digest, self.size);
        Ok(())
    }

    fn publish(&mut self) -> io::Result<()> {
        self.file.flush()?;
        self.file.get_ref().sync_all()?;
        fs::rename(&self.temp, self.bundle.path(&self.name))?;
        // The name itself becomes durable with the attestation. Until then a power cut may take the whole file away,
        // never a part of it, and the run is closed as interrupted without it.
        self.finished = true;
        Ok(())
    }
}

impl Write for ArtifactWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = self.file.write(bytes)?;
        self.hash.update(&bytes[..taken]);
        self.size += taken as u64;
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for ArtifactWriter {
    fn drop(&mut self) {
        if !self.finished {
            // An error is harmless: the next `reopen` removes the file.
            let _ = fs::remove_file(&self.temp);
        }
    }
}
