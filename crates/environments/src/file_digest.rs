//! The digest of a file's content.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use herma_core::Digest;
use sha2::{Digest as _, Sha256};

/// The size of one read.
const CHUNK_BYTES: usize = 64 << 10;

/// The SHA-256 of a file.
pub(crate) fn digest_of_file(path: &Path) -> io::Result<Digest> {
    digest_of_file_while(path, || Ok(()))
}

/// The SHA-256 of a file, as long as `check` permits to read on.
pub(crate) fn digest_of_file_while<E: From<io::Error>>(
    path: &Path,
    mut check: impl FnMut() -> Result<(), E>,
) -> Result<Digest, E> {
    let mut file = File::open(path)?;
    let (mut hash, mut buffer) = (Sha256::new(), vec![0; CHUNK_BYTES]);
    loop {
        check()?;
        match file.read(&mut buffer)? {
            0 => return Ok(Digest::from_bytes(hash.finalize().into())),
            read => hash.update(buffer.get(..read).unwrap_or_default()),
        }
    }
}
