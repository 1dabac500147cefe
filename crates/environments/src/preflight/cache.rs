//! Results of preflights, so that the same commands on the same base in the same environment run once.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use herma_core::Digest;
use herma_home::write_durably;
use serde::Serialize;

use super::BaseResult;
use crate::key::LayerKey;

/// Everything that decides what the commands do on the base.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct PreflightKey<'a> {
    /// The environment; none if the contract has no environment.
    pub environment: Option<LayerKey>,
    /// The base tree.
    pub base_tree: &'a str,
    /// The digest of the git history that they see.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub history: Option<Digest>,
    /// The digest of the base's submodules and LFS files.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content: Option<Digest>,
    /// The commands.
    pub commands: &'a [String],
    /// The destination.
    pub destination: &'a str,
}

/// The directory of results.
#[derive(Clone, Debug)]
pub struct PreflightCache {
    root: PathBuf,
}

impl PreflightCache {
    /// Opens the cache in this directory, making it where it is missing.
    pub fn open(root: &Path) -> io::Result<Self> {
        DirBuilder::new().recursive(true).mode(0o700).create(root)?;
        Ok(Self { root: root.to_owned() })
    }

    /// The results of an earlier preflight. A file that cannot be read counts as none.
    #[must_use]
    pub fn find(&self, key: &PreflightKey<'_>) -> Option<Vec<BaseResult>> {
        serde_json::from_slice(&fs::read(self.file(key).ok()?).ok()?).ok()
    }

    /// Keeps results. Those of a command that could not run are not kept: the fix may be outside of the key.
    pub fn keep(&self, key: &PreflightKey<'_>, results: &[BaseResult]) -> io::Result<()> {
        if results.iter().any(|result| matches!(result, BaseResult::Unrunnable { .. })) {
            return Ok(());
        }
        write_durably(&self.file(key)?, &serde_json::to_vec(results)?)
    }

    fn file(&self, key: &PreflightKey<'_>) -> io::Result<PathBuf> {
        let canonical = serde_json_canonicalizer::to_vec(key)?;
        Ok(self.root.join(format!("{}.json", Digest::of(&canonical).hex())))
    }
}
