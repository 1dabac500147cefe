//! A picture of a directory, to compare with a later one.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use herma_core::Digest;

/// Every entry below a directory with its permissions and the digest of its content, or of a link's target.
pub(super) type Picture = BTreeMap<PathBuf, (u32, Digest)>;

/// The picture of a directory; an empty one where it does not exist.
pub(super) fn picture(root: &Path) -> io::Result<Picture> {
    let mut picture = Picture::new();
    let mut pending = vec![root.to_owned()];
    while let Some(dir) = pending.pop() {
        let entries = match fs::read_dir(&dir) {
            Err(e) if e.kind() == io::ErrorKind::NotFound && dir == root => return Ok(picture),
            entries => entries?,
        };
        for entry in entries {
            let path = entry?.path();
            let meta = path.symlink_metadata()?;
            let content = if meta.is_dir() {
                pending.push(path.clone());
                Vec::new()
            } else if meta.is_symlink() {
                path.read_link()?.into_os_string().into_encoded_bytes()
            } else {
                fs::read(&path)?
            };
            picture.insert(path, (meta.permissions().mode(), Digest::of(&content)));
        }
    }
    Ok(picture)
}
