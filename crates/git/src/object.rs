//! Names of git objects, computed by herma itself.

use std::io::{self, Read};

use sha1::Sha1;
use sha2::{Digest, Sha256};

/// Which hash a repository names its objects by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ObjectFormat {
    /// The usual one.
    Sha1,
    /// Repositories made with `--object-format=sha256`.
    Sha256,
}

impl ObjectFormat {
    /// The format whose names have as many hex digits as `id`.
    #[must_use]
    pub fn of_id(id: &str) -> Self {
        if id.len() == 64 { Self::Sha256 } else { Self::Sha1 }
    }

    /// The name git's configuration knows it by.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Sha1 => "sha1",
            Self::Sha256 => "sha256",
        }
    }
}

/// The name of a blob of `size` bytes read from `content`. Fails if there are more or fewer bytes than that.
pub fn blob_id(format: ObjectFormat, size: u64, content: impl Read) -> io::Result<String> {
    match format {
        ObjectFormat::Sha1 => hash_blob(Sha1::new(), size, content),
        ObjectFormat::Sha256 => hash_blob(Sha256::new(), size, content),
    }
}

fn hash_blob<D: Digest>(mut hash: D, size: u64, mut content: impl Read) -> io::Result<String> {
    hash.update(format!("blob {size}\0"));
    let mut buffer = [0; 16 * 1024];
    let mut seen = 0;
    loop {
        let n = content.read(&mut buffer)?;
        if n == 0 {
            break;
        }
        seen += n as u64;
        hash.update(&buffer[..n]);
    }
    if seen != size {
        return Err(io::Error::other(format!("changed while it was read: {size} bytes became {seen}")));
    }
    Ok(hex::encode(hash.finalize()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_that_git_gives() {
        let id = blob_id(ObjectFormat::Sha1, 0, &b""[..]).unwrap();
        assert_eq!(id, "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391");
        let id = blob_id(ObjectFormat::Sha256, 0, &b""[..]).unwrap();
        assert_eq!(id, "473a0f4c3be8a93681a267e3b1e9a7dcda1185436fe141f7749120a303721813");
    }

    #[test]
    fn a_file_that_changes_under_the_hash_is_an_error() {
        assert!(blob_id(ObjectFormat::Sha1, 2, &b"abc"[..]).is_err());
        assert!(blob_id(ObjectFormat::Sha1, 4, &b"abc"[..]).is_err());
    }
}
