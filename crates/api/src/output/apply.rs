//! The output of `herma apply`. The use case is in the crate `apply`, which only the command line uses.

use std::path::PathBuf;

use herma_core::{Digest, RepoPath, RunId};
use schemars::JsonSchema;
use serde::Serialize;

/// A patch that was applied or taken back.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ApplyOutput {
    /// `herma.apply/v1`.
    pub schema: &'static str,
    /// The run.
    pub run_id: RunId,
    /// The action.
    pub action: ApplyAction,
    /// The repository.
    pub repository: PathBuf,
    /// The digest of the bundle's `attestation.json`.
    pub bundle: Digest,
    /// The changed files.
    pub files: Vec<RepoPath>,
    /// The branch that was made or deleted.
    pub branch: Option<String>,
    /// The commit of a branch that was made.
    pub commit: Option<String>,
}

/// An action of `herma apply`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ApplyAction {
    /// The work tree has the patch.
    Applied,
    /// A new branch has the patch.
    Branched,
    /// The work tree or the branch is as before.
    Undone,
}
