//! The keys of an environment's layers: a digest of everything that decides what is in them.

use std::fmt;

use herma_core::environment::{EnvironmentDefinition, SetupOn};
use herma_core::{Digest, RepoPath};
use herma_git::TreeEntry;
use serde::{Deserialize, Serialize};

use crate::inputs::InputDigest;
use crate::registries::RegistryAccess;
use crate::tools::FoundTool;

/// The key of a layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct LayerKey(Digest);

impl LayerKey {
    /// The name of the layer's directory.
    #[must_use]
    pub fn name(&self) -> String {
        self.0.hex()
    }

    /// A key from a directory's name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        format!("sha256:{name}").parse().ok().map(Self)
    }
}

impl fmt::Display for LayerKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// A tool as far as it decides what a build makes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolIdentity {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// The digest of its program.
    pub digest: Digest,
}

impl From<&FoundTool> for ToolIdentity {
    fn from(tool: &FoundTool) -> Self {
        Self { name: tool.name.clone(), version: tool.version.clone(), digest: tool.digest }
    }
}

/// Everything that decides what the fetch layer holds.
#[derive(Clone, Debug)]
pub struct KeyParts<'a> {
    /// The definition.
    pub definition: &'a EnvironmentDefinition,
    /// The inputs at the base.
    pub inputs: &'a [InputDigest],
    /// The `.gitignore` files of the base, which decide what is captured.
    pub ignore_rules: &'a [TreeEntry],
    /// The tools.
    pub tools: &'a [FoundTool],
    /// The registries, whose addresses decide where packages come from and are written into the layer.
    pub registries: &'a [RegistryAccess],
    /// The destination's name; for containers with the digest of the image.
    pub destination: &'a str,
    /// The architecture of the machine.
    pub architecture: &'a str,
}

#[derive(Serialize)]
struct FetchKey<'a> {
    schema: &'static str,
    definition: Digest,
    inputs: Vec<&'a InputDigest>,
    ignore_rules: Vec<IgnoreRules<'a>>,
    tools: Vec<ToolIdentity>,
    registries: Vec<Digest>,
    destination: &'a str,
    architecture: &'a str,
}

/// One `.gitignore` file.
#[derive(PartialEq, Eq, PartialOrd, Ord, Serialize)]
struct IgnoreRules<'a> {
    path: &'a RepoPath,
    mode: &'static str,
    blob: &'a str,
}

impl<'a> From<&'a TreeEntry> for IgnoreRules<'a> {
    fn from(file: &'a TreeEntry) -> Self {
        Self { path: &file.path, mode: file.entry.mode.as_str(), blob: &file.entry.id }
    }
}

#[derive(Serialize)]
struct SetupKey<'a> {
    schema: &'static str,
    fetch: LayerKey,
    base_tree: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    history: Option<Digest>,
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<Digest>,
}

/// The key of the fetch layer, which every tree with these inputs shares.
pub fn fetch_key(parts: &KeyParts<'_>) -> Result<LayerKey, serde_json::Error> {
    let mut tools: Vec<ToolIdentity> = parts.tools.iter().map(ToolIdentity::from).collect();
    tools.sort();
    let mut inputs: Vec<&InputDigest> = parts.inputs.iter().collect();
    inputs.sort();
    let mut ignore_rules: Vec<IgnoreRules<'_>> = parts.ignore_rules.iter().map(IgnoreRules::from).collect();
    ignore_rules.sort();
    digest(&FetchKey {
        schema: "herma.environment-fetch/v2",
        definition: parts.definition.digest()?,
        inputs,
        ignore_rules,
        tools,
        registries: parts.registries.iter().map(RegistryAccess::digest).collect::<Result<_, _>>()?,
        destination: parts.destination,
        architecture: parts.architecture,
    })
}

/// The base as setup sees it.
#[derive(Clone, Copy, Debug)]
pub struct SetupBase<'a> {
    /// The id of its tree.
    pub tree: &'a str,
    /// The digest of the git history that it has.
    pub history: Option<Digest>,
    /// The digest of its submodules and LFS files.
    pub content: Option<Digest>,
}

/// The key of the setup layer. Setup runs code of the base, so that only the same tree shares it, unless it ran on the inputs
/// alone.
pub fn setup_key(
    fetch: LayerKey,
    on: SetupOn,
    SetupBase { tree, history, content }: SetupBase<'_>,
) -> Result<LayerKey, serde_json::Error> {
    let sees_base = on == SetupOn::Base;
    let base_tree = sees_base.then_some(tree);
    let (history, content) = (history.filter(|_| sees_base), content.filter(|_| sees_base));
    digest(&SetupKey { schema: "herma.environment-setup/v1", fetch, base_tree, history, content })
}

fn digest(parts: &impl Serialize) -> Result<LayerKey, serde_json::Error> {
    Ok(LayerKey(Digest::of(&serde_json_canonicalizer::to_vec(parts)?)))
}
