//! Content of a base that a target does not have, so that workspaces and checkouts do not have it either.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::path::RepoPath;

/// A submodule or a file of Git LFS that the target does not have as the base records it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MissingContent {
    /// Its path.
    pub path: RepoPath,
    /// Why it is not there.
    pub reason: MissingReason,
}

/// Why content is not there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MissingReason {
    /// The submodule is not checked out.
    SubmoduleNotCheckedOut,
    /// The submodule is checked out at another commit than the base records.
    SubmoduleAtOtherCommit,
    /// The submodule has changed or untracked files.
    SubmoduleChanged,
    /// The work tree has no file for the pointer, or the pointer itself.
    LfsFileAbsent,
    /// The work tree has another file than the one that the pointer names.
    LfsFileDiffers,
}

impl MissingReason {
    /// The reason in words, and what helps.
    #[must_use]
    pub fn explain(self) -> &'static str {
        match self {
            Self::SubmoduleNotCheckedOut => {
                "submodule, not checked out: `git submodule update --init --recursive`"
            }
            Self::SubmoduleAtOtherCommit => {
                "submodule, checked out at another commit than the base records: `git submodule update`"
            }
            Self::SubmoduleChanged => "submodule with changes of its own: commit or remove them",
            Self::LfsFileAbsent => "Git LFS file, only its pointer is there: `git lfs pull`",
            Self::LfsFileDiffers => "Git LFS file, the work tree has another content: `git lfs checkout`",
        }
    }
}

/// Everything that is missing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MissingList {
    /// How many they are.
    pub count: u64,
    /// The first of them, at most 100.
    pub first: Vec<MissingContent>,
}

impl MissingList {
    /// How many are kept.
    pub const MAX_LISTED: usize = 100;

    /// The record of these; none where there are none.
    #[must_use]
    pub fn of(missing: &[MissingContent]) -> Option<Self> {
        let first: Vec<MissingContent> = missing.iter().take(Self::MAX_LISTED).cloned().collect();
        (!missing.is_empty()).then_some(Self { count: missing.len() as u64, first })
    }
}
