//! Digests that one process has taken, for the others.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use herma_model::Digest;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// A change that comes no more seconds after another may have the same time.
const SAME_TIME: i64 = 2;

/// What was taken of this very thing.
pub(crate) fn recall<T: DeserializeOwned + PartialEq>(memory: &Path, now: &T) -> Option<Digest> {
    let (known, digest): (T, Digest) = serde_json::from_slice(&fs::read(memory).ok()?).ok()?;
    (known == *now).then_some(digest)
}

/// Keeps what was taken, unless the last change is so recent that the next may have the same time. Whole or not at all, as
/// several of herma may do so at once.
pub(crate) fn keep(memory: &Path, of: impl Serialize, digest: Digest, changed: i64) -> io::Result<()> {
    let own = memory.with_extension(format!("{}.new", rustix::process::getpid().as_raw_nonzero()));
    fs::write(&own, serde_json::to_vec(&(of, digest))?)?;
    // By the clock that changes are dated with.
    if fs::metadata(&own)?.ctime().saturating_sub(changed) > SAME_TIME {
        fs::rename(&own, memory)
    } else {
        fs::remove_file(&own)
    }
}
