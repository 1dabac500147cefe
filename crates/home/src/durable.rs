//! Files that survive a crash: written in full or not at all.

use std::io::{self, Write as _};
use std::path::Path;

use herma_files::{open_directory, read_regular};

/// The largest marker of a run or an approval that is read.
const MAX_SHORT_BYTES: u64 = 4 << 10;

/// Makes a change of directory entries durable.
pub fn sync_dir(dir: &Path) -> io::Result<()> {
    open_directory(dir)?.sync_all()
}

/// Writes a file atomically and durably: a temporary file, fsync, rename, fsync of the directory.
pub fn write_durably(file: &Path, bytes: &[u8]) -> io::Result<()> {
    let dir = file.parent().unwrap_or(Path::new("/"));
    let mut temp = tempfile::NamedTempFile::new_in(dir)?;
    temp.write_all(bytes)?;
    temp.as_file().sync_all()?;
    temp.persist(file).map_err(|e| e.error)?;
    sync_dir(dir)
}

/// The text of a small file that herma wrote; none where it is not a regular file of UTF-8 text.
pub(crate) fn read_short(file: &Path) -> Option<String> {
    read_regular(file, MAX_SHORT_BYTES).ok().and_then(|bytes| String::from_utf8(bytes).ok())
}
