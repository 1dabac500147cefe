//! The content of Git LFS pointers, as the target's work tree has it. No `git-lfs` and no filter is run.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt as _;

use herma_core::RepoPath;
use herma_core::content::{MissingContent, MissingReason};
use herma_core::report::Mode;

use super::{attributes, make_dir, missing};
use crate::checkout::{Blob, read_blobs};
use crate::error::GitError;
use crate::git_dir::{CheckoutContent, GitDir, LfsFile};
use crate::lfs_status::small_blobs;
use crate::pointer::{MAX_BYTES, Pointer};
use crate::source::SourceRepo;
use crate::target_file;
use crate::tree_entry::TreeEntry;

/// Finds the pointers of the base, and copies the files that the target has for them.
pub(super) fn read(
    source: &SourceRepo,
    git_dir: &GitDir,
    entries: &[TreeEntry],
    content: &mut CheckoutContent,
    lacking: &mut Vec<MissingContent>,
) -> Result<(), GitError> {
    let Some(attributes) = attributes::directory(git_dir, entries)? else { return Ok(()) };
    let is_file = |entry: &&TreeEntry| matches!(entry.entry.mode, Mode::File | Mode::Executable);
    let files: Vec<&TreeEntry> = entries.iter().filter(is_file).collect();
    let paths: Vec<&RepoPath> = files.iter().map(|entry| &entry.path).collect();
    let kept = attributes::kept_by_lfs(&attributes, &paths)?;
    content.attributes = Some(attributes);
    let files: Vec<&TreeEntry> = files.into_iter().filter(|entry| kept.contains(&entry.path)).collect();
    let ids: BTreeSet<&str> = files.iter().map(|entry| entry.entry.id.as_str()).collect();
    let pointers = pointers(git_dir, &ids)?;
    let dir = make_dir(git_dir, "lfs")?;
    for entry in files {
        // Another blob was committed as it is.
        let Some(pointer) = pointers.get(&entry.entry.id) else { continue };
        content.pointers.insert(entry.path.clone());
        if content.lfs.contains_key(&entry.entry.id) {
            continue;
        }
        let copy = dir.join(pointer.digest.hex());
        let reason = match target_file::open(source.root(), &entry.path) {
            None => MissingReason::LfsFileAbsent,
            Some((file, bytes)) if bytes == pointer.bytes => {
                let to = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&copy);
                let to = to.map_err(GitError::file("write", &copy))?;
                let copied = target_file::copy(file, bytes, git_dir.format(), to);
                match copied.map_err(GitError::file("copy the LFS file to", &copy)) {
                    Ok((digest, id)) if digest == pointer.digest => {
                        content.lfs.insert(entry.entry.id.clone(), LfsFile { id, copy });
                        continue;
                    }
                    Err(full) if full.is_write_failure() => return Err(full),
                    Ok(_) | Err(_) => MissingReason::LfsFileDiffers,
                }
            }
            Some((_, bytes)) if bytes <= MAX_BYTES => MissingReason::LfsFileAbsent,
            Some(_) => MissingReason::LfsFileDiffers,
        };
        lacking.push(missing(&entry.path, reason));
    }
    // Another path with the same pointer may have had the file.
    let has = |path: &RepoPath| {
        let entry = entries.binary_search_by(|entry| entry.path.cmp(path)).ok().map(|at| &entries[at]);
        entry.is_some_and(|entry| content.lfs.contains_key(&entry.entry.id))
    };
    lacking.retain(|lacking| !has(&lacking.path));
    Ok(())
}

/// The pointers among these blobs. A large blob is not read.
fn pointers(git_dir: &GitDir, ids: &BTreeSet<&str>) -> Result<BTreeMap<String, Pointer>, GitError> {
    let small = small_blobs(git_dir.git(), git_dir.dir(), ids)?;
    let mut pointers = BTreeMap::new();
    let mut at = small.iter();
    read_blobs(git_dir, small.iter().map(String::as_str), |blob| {
        if let (Some(id), Blob::Small(content)) = (at.next(), blob) {
            pointers.extend(Pointer::parse(content).map(|pointer| (id.clone(), pointer)));
        }
        Ok(())
    })?;
    Ok(pointers)
}
