//! The only crate that runs git, and herma's own walk over a work tree.
//!
//! git never runs with configuration, attributes, hooks or filters that an agent could have written: herma keeps a
//! git directory of its own for each run, outside the agent's reach, and hashes the agent's files itself.

mod agent_repository;
mod apply;
mod base_file;
mod beneath;
mod checkout;
mod checkout_state;
mod content;
mod error;
mod git;
mod git_dir;
mod history;
mod identity;
mod index;
mod landing;
mod lfs_status;
mod object;
mod parallel;
mod plain;
mod pointer;
mod regular;
mod scrub;
mod source;
mod stamp;
mod target_file;
mod tree_entry;
mod walk;

pub use agent_repository::{AgentHead, ControlFiles, make_agent_repository};
pub use checkout::{copy_changes, lay_out, lay_out_watched};
pub use checkout_state::CheckoutState;
pub use error::GitError;
pub use git::Git;
pub use git_dir::{Baseline, GitDir, NewFile, ResultCommit};
pub use history::{BaseHistory, CheckoutRepository, CommitOnBase};
pub use identity::Identity;
pub use landing::{
    BaseRef, LandError, LandState, Landing, PersonalBranch, RefList, Unlanded, make_disposable,
};
pub use object::{ObjectFormat, blob_id, tree_id};
pub use plain::{NotPlain, is_plain};
pub use source::{SourceRepo, SourceState, StatusSummary};
pub use tree_entry::TreeEntry;
pub use walk::{WalkResult, walk, walk_with};
