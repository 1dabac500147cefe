//! The digest of a file that may be large, read in pieces.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use herma_model::Digest;
use sha2::{Digest as _, Sha256};

const PIECE: usize = 64 * 1024;

/// The digest of the file at `path`.
pub(crate) fn of_file(path: &Path) -> io::Result<Digest> {
    let mut file = File::open(path)?;
    let mut hasher = Sha256::new();
    let mut piece = vec![0; PIECE];
    loop {
        match file.read(&mut piece) {
            Ok(0) => return Ok(Digest::from_bytes(hasher.finalize().into())),
            Ok(n) => hasher.update(&piece[..n]),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_give_the_digest_of_the_whole() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("program");
        for size in [0, 1, PIECE - 1, PIECE, 3 * PIECE + 7] {
            let bytes: Vec<u8> = (0..size).map(|n| u8::try_from(n % 251).unwrap()).collect();
            std::fs::write(&path, &bytes).unwrap();
            assert_eq!(of_file(&path).unwrap(), Digest::of(&bytes), "{size} bytes");
        }
    }
}
