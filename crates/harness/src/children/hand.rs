//! The result of a child run, for its parent.

use std::fs;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use herma_core::report::{ChangedFile, Entry, Mode};
use herma_git::{ObjectFormat, blob_id};

use crate::child_queue::HandedFile;

/// The most that is handed over.
const MAX_BYTES: usize = 16 << 20;

/// The changed files with their contents, read from the workspace of a run whose engine is dead. None where they are too
/// much, or not any more what was recorded.
pub(crate) fn hand_over(workspace: &Path, changes: &[ChangedFile]) -> Option<Vec<HandedFile>> {
    let mut left = MAX_BYTES;
    let mut files = Vec::new();
    for ChangedFile { path, old, new } in changes {
        let file = workspace.join(std::ffi::OsStr::from_bytes(path.as_bytes()));
        let content = match new {
            None => None,
            Some(entry) => {
                let content = read(&file, entry, left)?;
                left -= content.len();
                Some(STANDARD.encode(content))
            }
        };
        files.push(HandedFile { path: path.clone(), old: old.clone(), new: new.clone(), content });
    }
    Some(files)
}

fn read(file: &Path, entry: &Entry, most: usize) -> Option<Vec<u8>> {
    let content = match entry.mode {
        Mode::Symlink => fs::read_link(file).ok()?.into_os_string().into_vec(),
        Mode::File | Mode::Executable => {
            let size = fs::symlink_metadata(file).ok().filter(fs::Metadata::is_file)?.len();
            (size <= most as u64).then(|| fs::read(file).ok()).flatten()?
        }
        Mode::Submodule => return None,
    };
    let size = u64::try_from(content.len()).ok()?;
    let id = blob_id(ObjectFormat::of_id(&entry.id), size, content.as_slice()).ok()?;
    (id == entry.id && content.len() <= most).then_some(content)
}
