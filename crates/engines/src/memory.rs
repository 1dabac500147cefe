//! A cache of digests, shared between processes.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use herma_core::Digest;
use herma_files::{MAX_RECORD_BYTES, open_with, read_regular};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Two changes within this time may have the same timestamp.
const SAME_TIME_SECONDS: i64 = 2;

/// The cached digest of this key.
pub(crate) fn recall<T: DeserializeOwned + PartialEq>(memory: &Path, now: &T) -> Option<Digest> {
    let (known, digest): (T, Digest) =
        serde_json::from_slice(&read_regular(memory, MAX_RECORD_BYTES).ok()?).ok()?;
    (known == *now).then_some(digest)
}

/// Stores a digest, unless the last change is so recent that the next may have the same timestamp. Several
/// processes may write at once, and each may be killed: an incomplete entry is ignored, and no other file is left.
pub(crate) fn keep(memory: &Path, of: impl Serialize, digest: Digest, changed: i64) -> io::Result<()> {
    let text = serde_json::to_vec(&(of, digest))?;
    let mut file = open_with(File::options().create(true).write(true), memory)?;
    file.set_len(0)?;
    // By the clock that timestamps changes.
    if file.metadata()?.ctime().saturating_sub(changed) > SAME_TIME_SECONDS {
        file.write_all(&text)
    } else {
        fs::remove_file(memory)
    }
}
