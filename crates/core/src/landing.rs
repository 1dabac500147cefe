//! The landing of a run in a repository, as its report records it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The one branch with one commit that a run may leave in a repository.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LandingRecord {
    /// Where.
    pub repository: LandedIn,
    /// The branch's full name.
    pub reference: String,
    /// Its one commit.
    pub commit: String,
    /// That commit's parent: what the target was at.
    pub base: String,
    /// Whether the branch is there.
    pub landed: bool,
    /// The refs that may be created and moved in the repository.
    pub branch_policy: String,
    /// The disposal of a repository that was made for the run.
    pub disposal: Option<String>,
}

/// The repository that a run landed in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LandedIn {
    /// One that was made for the run.
    Disposable,
    /// The admitted target.
    Target,
}
