//! An agent that was installed as a tree: what all such engines have in common.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use herma_destination::{Mount, View};
use herma_model::Digest;
use herma_model::engine::EngineName;

use crate::engine::{Assignment, EngineError, Launch};
use crate::package::{Build, Package};
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

    /// The first words of its command, as they are seen inside: its program, and the script that it interprets.
    pub(crate) fn command(&self) -> Result<Vec<OsString>, EngineError> {
        if self.tree.is_none() {
            return Err(self.nothing());
        }
        let Build { program, script, .. } = self.package.build();
        let inside = |path: &str| Path::new(INSIDE).join(path).into_os_string();
        Ok(std::iter::once(program).chain(script).map(inside).collect())
    }

    /// How it is asked something with one word; nothing where there is nothing to ask.
    pub(crate) fn asked(&self, word: &str) -> Option<Launch> {
        let mut argv = self.command().ok()?;
        argv.push(word.into());
        Some(Launch { argv, ..Launch::default() })
    }

    /// The contract's model, and the port that leads to it.
    pub(crate) fn way<'a>(
        &self,
        assignment: &Assignment<'a>,
        view: &View,
    ) -> Result<(&'a str, u16), EngineError> {
        let model = assignment.contract.terms.model.as_ref().map(|choice| choice.model.as_str());
        model.zip(view.router_port).ok_or_else(|| EngineError::NoModel(self.name.clone()))
    }

    fn nothing(&self) -> EngineError {
        EngineError::NotInstalled { engine: self.name.clone() }
    }
}

/// Writes a file into the engine directory, below which the agent has its own.
pub(crate) fn write(
    engine_dir: &Path,
    home: &'static str,
    file: &'static str,
    text: &str,
) -> Result<(), EngineError> {
    let place = engine_dir.join(home);
    // Only this one: an engine directory that is not there is an error.
    if !place.is_dir() {
        fs::create_dir(&place).map_err(|source| EngineError::Write { file: home, source })?;
    }
    fs::write(engine_dir.join(file), text).map_err(|source| EngineError::Write { file, source })
}

/// The one line that a program printed, if it is one that can be shown.
pub(crate) fn one_line(output: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(output).ok()?.trim_end_matches('\n');
    let sound =
        (1..=MAX_IDENTITY).contains(&text.len()) && text.bytes().all(|b| b == b' ' || b.is_ascii_graphic());
    sound.then(|| text.to_owned())
}
