//! Digests that one process has taken, for the others.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use herma_core::Digest;
use herma_files::{MAX_RECORD_BYTES, open_with, read_regular};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// A change that comes no more seconds after another may have the same time.
const SAME_TIME: i64 = 2;

/// What was taken of this very thing.
pub(crate) fn recall<T: DeserializeOwned + PartialEq>(memory: &Path, now: &T) -> Option<Digest> {
    let (known, digest): (T, Digest) =
        serde_json::from_slice(&read_regular(memory, MAX_RECORD_BYTES).ok()?).ok()?;
    (known == *now).then_some(digest)
}

/// Keeps what was taken, unless the last change is so recent that the next may have the same time. Several of herma may do so
/// at once, and each may be killed meanwhile: what is not whole is not recalled, and no other file is left.
pub(crate) fn keep(memory: &Path, of: impl Serialize, digest: Digest, changed: i64) -> io::Result<()> {
    let text = serde_json::to_vec(&(of, digest))?;
    let mut file = open_with(File::options().create(true).write(true), memory)?;
    file.set_len(0)?;
    // By the clock that changes are dated with.
    if file.metadata()?.ctime().saturating_sub(changed) > SAME_TIME {
        file.write_all(&text)
    } else {
        fs::remove_file(memory)
    }
}
