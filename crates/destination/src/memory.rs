//! Files that exist only in memory.

use std::fs::File;
use std::io::{self, Seek as _, Write as _};

use rustix::fs::MemfdFlags;

/// A memfd with this content, positioned at its start.
pub(crate) fn file(content: &[u8]) -> io::Result<File> {
    let mut file = File::from(rustix::fs::memfd_create("herma", MemfdFlags::CLOEXEC)?);
    file.write_all(content)?;
    file.rewind()?;
    Ok(file)
}
