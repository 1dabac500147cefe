//! The path by which a probe tests Landlock.

use serde::{Deserialize, Serialize};

/// A path that the mounts leave writable, so that only Landlock denies writing it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LandlockCanary {
    /// A file.
    File,
    /// A directory.
    Directory,
}
