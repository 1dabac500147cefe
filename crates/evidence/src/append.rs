//! A file of the bundle that grows by whole lines.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write as _};

use herma_core::Digest;
use sha2::{Digest as _, Sha256};

use crate::bundle::{Bundle, WriteError};
use crate::lines::LineBuffer;

/// A growing file. It is made when its first line is written.
#[derive(Debug)]
pub(crate) struct Append {
    bundle: Bundle,
    name: &'static str,
    file: Option<File>,
    hash: Sha256,
    size: u64,
}

impl Append {
    pub(crate) fn new(bundle: &Bundle, name: &'static str) -> Self {
        Self { bundle: bundle.clone(), name, file: None, hash: Sha256::new(), size: 0 }
    }

    /// Continues a file that is there. `take` sees each line; the file is cut before the first one that it refuses,
    /// which is where a crash tore it.
    pub(crate) fn resume(
        bundle: &Bundle,
        name: &'static str,
        longest: usize,
        mut take: impl FnMut(&[u8]) -> bool,
    ) -> Result<Self, WriteError> {
        bundle.admit(name)?;
        let mut this = Self::new(bundle, name);
        let mut file = match OpenOptions::new().read(true).append(true).open(bundle.path(name)) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(this),
            opened => opened.map_err(|e| WriteError::new(name, e))?,
        };
        let mut lines = LineBuffer::new(longest);
        let mut torn = false;
        let mut chunk = vec![0; 64 << 10];
        while !torn {
            let read = file.read(&mut chunk).map_err(|e| WriteError::new(name, e))?;
            if read == 0 {
                break;
            }
            lines.push(&chunk[..read], &mut |line| {
                torn = torn || !line.is_whole() || !take(line.bytes);
                if !torn {
                    this.hash.update(line.bytes);
                    this.hash.update(b"\n");
                    this.size += line.bytes.len() as u64 + 1;
                }
            });
        }
        file.set_len(this.size).and_then(|()| file.sync_all()).map_err(|e| WriteError::new(name, e))?;
        this.file = Some(file);
        Ok(this)
    }

    /// Appends one line, whole or not at all.
    pub(crate) fn line(&mut self, line: &[u8]) -> Result<(), WriteError> {
        self.bundle.admit(self.name)?;
        self.put(line).map_err(|e| WriteError::new(self.name, e))
    }

    fn put(&mut self, line: &[u8]) -> io::Result<()> {
        let mut bytes = Vec::with_capacity(line.len() + 1);
        bytes.extend_from_slice(line);
        bytes.push(b'\n');
        let file = match &mut self.file {
            Some(file) => file,
            none => {
                let path = self.bundle.path(self.name);
                none.insert(OpenOptions::new().append(true).create_new(true).open(path)?)
            }
        };
        if let Err(error) = file.write_all(&bytes) {
            // Half a line must not stay: the next one would be glued to it.
            file.set_len(self.size)?;
            return Err(error);
        }
        self.hash.update(&bytes);
        self.size += bytes.len() as u64;
        Ok(())
    }

    /// Makes every line so far durable.
    pub(crate) fn settle(&self) -> Result<(), WriteError> {
        let Some(file) = &self.file else { return Ok(()) };
        file.sync_data().map_err(|e| WriteError::new(self.name, e))
    }

    /// Makes the file durable and records it. A file without a line was never made.
    pub(crate) fn finish(&mut self) -> Result<(), WriteError> {
        let Some(file) = &self.file else { return Ok(()) };
        file.sync_all().map_err(|e| WriteError::new(self.name, e))?;
        self.bundle.record(self.name, Digest::from_bytes(self.hash.clone().finalize().into()), self.size);
        Ok(())
    }
}
