//! The digests, size and number of files of a layer.

use std::fs::{self, DirEntry, Metadata};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use herma_core::Digest;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::limits::{TreeCounter, TreeError, TreeLimits};
use super::metadata::{TreeMetadata, read_metadata};
use crate::file_digest::digest_of_file_while;

/// A tree in figures.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TreeSummary {
    /// The digest over paths, kinds, permission bits and contents.
    pub digest: Digest,
    /// The digest over paths, kinds, permission bits, sizes and link targets. It costs no reading of files, and detects
    /// truncated and deleted ones.
    pub metadata_digest: Digest,
    /// The bytes of all files.
    pub bytes: u64,
    /// The number of files and links.
    pub files: u64,
}

/// The directories of a tree, each with its name in digests and errors.
type Parts<'a> = [(&'a str, &'a Path)];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Directory,
    Link,
    File,
}

/// One entry of a walk.
struct Entry<'a> {
    part: &'a str,
    /// Its path below the part.
    below: &'a Path,
    path: PathBuf,
    kind: Kind,
    meta: Metadata,
}

/// Describes these directories, each under its name. Sockets, pipes and devices are passed over.
pub fn summarize(parts: &[(&str, &Path)]) -> io::Result<TreeSummary> {
    Ok(summarize_within(parts, &TreeLimits::default())?)
}

/// The same within limits. A tree above them is an error before any file is read.
pub fn summarize_within(parts: &[(&str, &Path)], limits: &TreeLimits<'_>) -> Result<TreeSummary, TreeError> {
    let TreeMetadata { digest: metadata_digest, bytes, files, .. } = read_metadata(parts, limits, None)?;
    let digest = content_digest(parts, limits)?;
    Ok(TreeSummary { digest, metadata_digest, bytes, files })
}

/// Makes every directory below this one readable and writable for its owner, so that its entries can be listed and moved.
/// Package managers leave read-only directories in their caches.
pub(crate) fn make_directories_writable(root: &Path, limits: &TreeLimits<'_>) -> Result<(), TreeError> {
    let counter = TreeCounter::new(*limits);
    let mut pending = vec![root.to_owned()];
    while let Some(dir) = pending.pop() {
        make_writable(&dir)?;
        for entry in fs::read_dir(&dir)? {
            let entry = entry?;
            let path = entry.path();
            counter.add_entry(path.as_os_str().len(), || path.clone())?;
            if entry.file_type()?.is_dir() {
                pending.push(path);
            }
        }
    }
    Ok(())
}

/// Gives the owner of a directory all permissions for it.
pub(crate) fn make_writable(dir: &Path) -> io::Result<()> {
    const OWNER: u32 = 0o700;
    let mode = fs::symlink_metadata(dir)?.permissions().mode();
    if mode & OWNER == OWNER {
        return Ok(());
    }
    fs::set_permissions(dir, fs::Permissions::from_mode((mode & 0o7777) | OWNER))
}

fn content_digest(parts: &Parts<'_>, limits: &TreeLimits<'_>) -> Result<Digest, TreeError> {
    let mut hash = Sha256::new();
    walk(parts, limits, |entry| {
        let (kind, content) = match entry.kind {
            Kind::Directory => ("directory", Digest::of(b"")),
            Kind::Link => ("link", Digest::of(fs::read_link(&entry.path)?.as_os_str().as_bytes())),
            Kind::File => {
                let is_program = entry.meta.permissions().mode() & 0o100 != 0;
                let content = digest_of_file_while(&entry.path, || limits.check())?;
                (if is_program { "program" } else { "file" }, content)
            }
        };
        hash.update(format!("{kind} {content} {}/", entry.part));
        hash.update(entry.below.as_os_str().as_bytes());
        hash.update([0]);
        Ok(())
    })?;
    Ok(Digest::from_bytes(hash.finalize().into()))
}

/// Visits every directory, link and file in an order that depends on names alone.
fn walk(
    parts: &Parts<'_>,
    limits: &TreeLimits<'_>,
    mut visit: impl FnMut(&Entry<'_>) -> Result<(), TreeError>,
) -> Result<(), TreeError> {
    let counter = TreeCounter::new(*limits);
    for (part, root) in parts {
        let mut pending: Vec<PathBuf> = vec![PathBuf::new()];
        while let Some(dir) = pending.pop() {
            for entry in sorted(part, root, &dir, &counter)? {
                limits.check()?;
                let (below, kind) = (dir.join(entry.file_name()), entry.file_type()?);
                let kind = match () {
                    () if kind.is_dir() => Kind::Directory,
                    () if kind.is_symlink() => Kind::Link,
                    () if kind.is_file() => Kind::File,
                    () => continue,
                };
                let (path, meta) = (entry.path(), entry.metadata()?);
                if kind == Kind::File {
                    counter.add_bytes(meta.len(), || Path::new(part).join(&below))?;
                }
                visit(&Entry { part, below: &below, path, kind, meta })?;
                if kind == Kind::Directory {
                    pending.push(below);
                }
            }
        }
    }
    Ok(())
}

/// The entries of a directory, sorted. They are counted before they are kept: one directory can have more than the limit.
fn sorted(
    part: &str,
    root: &Path,
    dir: &Path,
    counter: &TreeCounter<'_>,
) -> Result<Vec<DirEntry>, TreeError> {
    let mut entries = Vec::new();
    for entry in fs::read_dir(root.join(dir))? {
        let entry = entry?;
        let path_bytes = dir.as_os_str().len() + entry.file_name().len();
        counter.add_entry(path_bytes, || Path::new(part).join(dir).join(entry.file_name()))?;
        entries.push(entry);
    }
    entries.sort_by_cached_key(DirEntry::file_name);
    Ok(entries)
}
