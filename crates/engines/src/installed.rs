//! An agent that was installed as a tree: what all such engines have in common.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use herma_destination::Mount;
use herma_model::Digest;
use herma_model::engine::EngineName;

use crate::engine::EngineError;
use crate::package::Package;
use crate::tree::TreeDigest;

/// Where the tree appears inside the destination.
const INSIDE: &str = "/opt/herma-engine";

/// The longest line that a program may say of itself.
const MAX_IDENTITY: usize = 128;

/// The tree of an agent that was admitted, if one was.
#[derive(Debug)]
pub(crate) struct Installed {
    pub(crate) name: EngineName,
    pub(crate) package: Package,
    tree: Option<TreeDigest>,
    version: String,
}

impl Installed {
    pub(crate) fn new(name: EngineName, package: Package, tree: Option<PathBuf>) -> Self {
        let version = tree.as_deref().and_then(|tree| package.installed(tree));
        let version = version.unwrap_or_else(|| "not installed".to_owned());
        Self { name, package, tree: tree.map(TreeDigest::of), version }
    }

    /// The version that lies there.
    pub(crate) fn version(&self) -> &str {
        &self.version
    }

    pub(crate) fn digest(&self) -> Result<Digest, EngineError> {
        let tree = self.tree.as_ref().ok_or_else(|| self.nothing())?;
        tree.take().map_err(|source| EngineError::Digest { engine: self.name.clone(), source })
    }

    pub(crate) fn root(&self) -> Option<&Path> {
        self.tree.as_ref().map(TreeDigest::root)
    }

    pub(crate) fn mounts(root: &Path) -> Vec<Mount> {
        vec![Mount { host: root.to_owned(), inside: INSIDE.into() }]
    }

    /// Its program, as it is seen inside.
    pub(crate) fn program(&self) -> Result<OsString, EngineError> {
        if self.tree.is_none() {
            return Err(self.nothing());
        }
        Ok(Path::new(INSIDE).join(self.package.program()).into_os_string())
    }

    fn nothing(&self) -> EngineError {
        EngineError::NotInstalled { engine: self.name.clone() }
    }
}

/// The one line that a program printed, if it is one that can be shown.
pub(crate) fn one_line(output: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(output).ok()?.trim_end_matches('\n');
    let sound =
        (1..=MAX_IDENTITY).contains(&text.len()) && text.bytes().all(|b| b == b' ' || b.is_ascii_graphic());
    sound.then(|| text.to_owned())
}
