//! The digest, size and number of files of a layer.

use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use herma_core::Digest;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::file_digest::digest_of_file;

/// A tree in figures.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TreeSummary {
    /// The digest over paths, kinds, permission bits and contents.
    pub digest: Digest,
    /// The bytes of all files.
    pub bytes: u64,
    /// The number of files and links.
    pub files: u64,
}

/// Describes these directories, each under its name. Sockets, pipes and devices are passed over.
pub fn summarize(parts: &[(&str, &Path)]) -> io::Result<TreeSummary> {
    let mut hash = Sha256::new();
    let (mut bytes, mut files) = (0, 0);
    for (name, root) in parts {
        let mut pending: Vec<PathBuf> = vec![PathBuf::new()];
        while let Some(below) = pending.pop() {
            let mut entries: Vec<fs::DirEntry> =
                fs::read_dir(root.join(&below))?.collect::<Result<_, _>>()?;
            entries.sort_by_key(fs::DirEntry::file_name);
            for entry in entries {
                let (path, kind) = (below.join(entry.file_name()), entry.file_type()?);
                let (kind, content) = if kind.is_dir() {
                    pending.push(path.clone());
                    ("directory", Digest::of(b""))
                } else if kind.is_symlink() {
                    files += 1;
                    ("link", Digest::of(fs::read_link(entry.path())?.as_os_str().as_bytes()))
                } else if kind.is_file() {
                    let meta = entry.metadata()?;
                    (bytes, files) = (bytes + meta.len(), files + 1);
                    let is_program = meta.permissions().mode() & 0o100 != 0;
                    (if is_program { "program" } else { "file" }, digest_of_file(&entry.path())?)
                } else {
                    continue;
                };
                hash.update(format!("{kind} {content} {name}/"));
                hash.update(path.as_os_str().as_bytes());
                hash.update([0]);
            }
        }
    }
    Ok(TreeSummary { digest: Digest::from_bytes(hash.finalize().into()), bytes, files })
}
