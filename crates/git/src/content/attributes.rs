//! Which paths Git LFS keeps, by the attributes of the base: git reads them from an index, never from a work tree.

use std::collections::BTreeSet;

use herma_core::RepoPath;
use herma_core::report::Mode;

use super::make_dir;
use crate::checkout::{Blob, read_blobs};
use crate::error::GitError;
use crate::git_dir::GitDir;
use crate::index::index;
use crate::tree_entry::TreeEntry;

/// The value of `filter` that `git lfs track` sets.
const FILTER: &[u8] = b"lfs";

/// A git directory whose index is the base, if some attributes of the base name the filter.
pub(super) fn directory(git_dir: &GitDir, entries: &[TreeEntry]) -> Result<Option<GitDir>, GitError> {
    let is_attributes = |entry: &&TreeEntry| {
        entry.path.name() == b".gitattributes" && matches!(entry.entry.mode, Mode::File | Mode::Executable)
    };
    let files: Vec<&str> =
        entries.iter().filter(is_attributes).map(|entry| entry.entry.id.as_str()).collect();
    let mut names_filter = false;
    if !files.is_empty() {
        read_blobs(git_dir, files.into_iter(), |blob| {
            names_filter |= match blob {
                Blob::Small(content) => {
                    content.windows(b"filter=lfs".len()).any(|window| window == b"filter=lfs")
                }
                // git reads attributes from files of many megabytes; it is asked.
                Blob::Large(_) => true,
            };
            Ok(())
        })?;
    }
    if !names_filter {
        return Ok(None);
    }
    let dir = make_dir(git_dir, "attributes")?;
    let objects = git_dir.dir().join("objects");
    let attributes = GitDir::create(git_dir.git(), &dir, git_dir.format(), Some(&objects))?;
    // This file would outrank those of the base.
    let own = dir.join("info/attributes");
    std::fs::remove_file(&own).map_err(GitError::file("remove", own))?;
    let file = dir.join("index");
    std::fs::write(&file, index(git_dir.format(), entries, &|_| crate::index::Shown::Plain))
        .map_err(GitError::file("write", file))?;
    Ok(Some(attributes))
}

/// Those of `paths` that have the filter.
pub(super) fn kept_by_lfs(attributes: &GitDir, paths: &[&RepoPath]) -> Result<BTreeSet<RepoPath>, GitError> {
    if paths.is_empty() {
        return Ok(BTreeSet::new());
    }
    let stdin: Vec<u8> = paths.iter().flat_map(|path| [path.as_bytes(), b"\0"].concat()).collect();
    let args = ["check-attr", "--cached", "-z", "--stdin", "filter"];
    let answer = attributes.git().call(attributes.dir(), args).stdin(stdin).checked()?.stdout;
    // `<path>\0filter\0<value>\0`
    let fields: Vec<&[u8]> = answer.split(|b| *b == 0).collect();
    let kept = fields.chunks_exact(3).filter(|line| line[2] == FILTER);
    kept.map(|line| RepoPath::new(line[0]).ok_or_else(|| GitError::unexpected("check-attr", line[0])))
        .collect()
}
