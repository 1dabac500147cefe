//! Ids of git objects, computed by herma itself.

use std::io::{self, Read};

use herma_core::RepoPath;
use herma_core::report::Entry;
use sha1::Sha1;
use sha2::{Digest, Sha256};

/// The hash function of a repository's object ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ObjectFormat {
    /// The default.
    Sha1,
    /// Repositories made with `--object-format=sha256`.
    Sha256,
}

impl ObjectFormat {
    /// The format whose ids have as many hex digits as `id`.
    #[must_use]
    pub fn of_id(id: &str) -> Self {
        if id.len() == 64 { Self::Sha256 } else { Self::Sha1 }
    }

    /// The hash of these parts.
    pub(crate) fn hash(self, parts: &[&[u8]]) -> Vec<u8> {
        fn over<D: Digest>(parts: &[&[u8]]) -> Vec<u8> {
            let mut hash = D::new();
            for part in parts {
                hash.update(part);
            }
            hash.finalize().to_vec()
        }
        match self {
            Self::Sha1 => over::<Sha1>(parts),
            Self::Sha256 => over::<Sha256>(parts),
        }
    }
}

/// The id of a blob of `size` bytes read from `content`. Fails if the size differs.
pub fn blob_id(format: ObjectFormat, size: u64, content: impl Read) -> io::Result<String> {
    match format {
        ObjectFormat::Sha1 => hash_blob(Sha1::new(), size, content),
        ObjectFormat::Sha256 => hash_blob(Sha256::new(), size, content),
    }
}

/// The id of a blob whose content arrives in pieces.
pub(crate) enum BlobHash {
    Sha1(Sha1),
    Sha256(Sha256),
}

impl BlobHash {
    pub(crate) fn new(format: ObjectFormat, bytes: u64) -> Self {
        let head = format!("blob {bytes}\0");
        match format {
            ObjectFormat::Sha1 => Self::Sha1(Sha1::new_with_prefix(head)),
            ObjectFormat::Sha256 => Self::Sha256(Sha256::new_with_prefix(head)),
        }
    }

    pub(crate) fn update(&mut self, piece: &[u8]) {
        match self {
            Self::Sha1(hash) => hash.update(piece),
            Self::Sha256(hash) => hash.update(piece),
        }
    }

    pub(crate) fn finish(self) -> String {
        match self {
            Self::Sha1(hash) => hex::encode(hash.finalize()),
            Self::Sha256(hash) => hex::encode(hash.finalize()),
        }
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

/// The id of the tree with these entries, which must be in path order.
#[must_use]
pub fn tree_id(format: ObjectFormat, entries: &[(&RepoPath, &Entry)]) -> String {
    let entries: Vec<_> = entries.iter().map(|(path, entry)| (path.as_bytes(), *entry)).collect();
    hex::encode(hash_tree(format, &entries))
}

fn hash_tree(format: ObjectFormat, entries: &[(&[u8], &Entry)]) -> Vec<u8> {
    // Each line has git's sort key, a directory's name with a slash, and the serialized entry.
    let mut lines: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
    let mut rest = entries;
    while let Some((path, entry)) = rest.first() {
        let Some(slash) = path.iter().position(|b| *b == b'/') else {
            let id = hex::decode(&entry.id).unwrap_or_default();
            lines
                .push((path.to_vec(), [entry.mode.as_str().as_bytes(), b" ", path, b"\0", &id[..]].concat()));
            rest = &rest[1..];
            continue;
        };
        let (directory, name) = (&path[..=slash], &path[..slash]);
        let below = rest.iter().take_while(|(path, _)| path.starts_with(directory)).count();
        let inner: Vec<_> = rest[..below].iter().map(|(path, entry)| (&path[slash + 1..], *entry)).collect();
        let id = hash_tree(format, &inner);
        lines.push((directory.to_vec(), [b"40000 ", name, b"\0", &id[..]].concat()));
        rest = &rest[below..];
    }
    lines.sort();
    let content: Vec<u8> = lines.into_iter().flat_map(|(_, line)| line).collect();
    format.hash(&[format!("tree {}\0", content.len()).as_bytes(), &content])
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
