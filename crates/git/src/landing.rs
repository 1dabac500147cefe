//! Landing: the result as one commit under one new ref in the target, and the way back.
//!
//! Everything that could fail is done in herma's own git directory first. The target then gets one pack, whose name
//! is known before it comes, and one ref, in one transaction. HEAD, index and work tree are never touched.

mod disposable;
mod elsewhere;
mod hidden;
mod land;
mod pack;
mod pack_index;
mod personal;
mod prepare;
mod reach;
mod refs;
mod target;
mod unland;

pub use disposable::make_disposable;
pub use personal::PersonalBranch;
pub use refs::RefList;

use serde::{Deserialize, Serialize};

use crate::error::GitError;
use crate::git_dir::is_id;
use crate::plain::NotPlain;

/// The prefix of all branches.
const HEADS: &str = "refs/heads";
/// The prefix of all refs that herma creates in a target.
const REFS: &str = "refs/heads/herma";

/// The planned changes to a target. Complete before the target is touched, so that after a crash a reader of it can
/// tell what was done, and undo it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Landing {
    /// The ref to create: `refs/heads/herma/<run>`.
    pub reference: String,
    /// The one commit that it will point to.
    pub commit: String,
    /// Its parent: the target's own commit that the run started from.
    pub base: String,
    /// The ref that must not have moved; none if the contract's base is not a ref.
    pub base_ref: Option<BaseRef>,
    /// The commit's tree, which is the tree that was collected.
    pub tree: String,
    /// The pack that brings the new objects, without its extension.
    pub pack: String,
}

/// The ref of the base, and its value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BaseRef {
    /// Its full name, or `HEAD` if that is on no branch.
    pub name: String,
    /// Its value: the base commit, or an annotated tag of it.
    pub id: String,
}

impl Landing {
    /// Names become part of paths and of git's input, so values read from disk are checked before.
    fn check(&self) -> Result<(), GitError> {
        let run = self.reference.strip_prefix(REFS).and_then(|rest| rest.strip_prefix('/'));
        let own =
            run.is_some_and(|run| run.bytes().all(|b| b.is_ascii_hexdigit() || b == b'-') && !run.is_empty());
        if own { self.check_ids() } else { Err(self.unexpected()) }
    }

    fn check_ids(&self) -> Result<(), GitError> {
        let plain = |text: &str| !text.bytes().any(|b| b.is_ascii_whitespace() || b.is_ascii_control());
        let sound = self.pack.strip_prefix("pack-").is_some_and(is_id)
            && [&self.commit, &self.base, &self.tree].into_iter().all(|id| is_id(id))
            && self.base_ref.as_ref().is_none_or(|base| plain(&base.name) && is_id(&base.id));
        if sound { Ok(()) } else { Err(self.unexpected()) }
    }

    fn unexpected(&self) -> GitError {
        GitError::unexpected("landing", self.reference.as_bytes())
    }

    /// The directories of the ref's name below `refs/heads`, the outermost first.
    fn directories(&self) -> Vec<&str> {
        let slashes = self.reference.match_indices('/').map(|(at, _)| &self.reference[..at]);
        slashes.filter(|name| name.len() > HEADS.len()).collect()
    }
}

/// Why nothing landed. The target is unchanged.
#[derive(Debug, thiserror::Error)]
pub enum LandError {
    /// A ref with that name exists, or one that git cannot keep beside it.
    #[error(
        "the ref `{reference}` is there already and is not of this run: rename or delete it, then run again"
    )]
    RefTaken {
        /// The conflicting ref.
        reference: String,
    },
    /// The base is not what the run started from.
    #[error(
        "`{reference}` moved while the run was under way: run again, so that the result fits what is there now"
    )]
    BaseMoved {
        /// The ref that moved.
        reference: String,
    },
    /// Part of the target has become a link, so that writes would go elsewhere.
    #[error("the target is not in one place any more: {0}: put it back, then run again")]
    NotPlain(#[from] NotPlain),
    /// git refuses the pack or the ref, also after the wait for a lock.
    #[error(
        "git could not write to the target: {cause}; end other git commands there, remove a lock file that none of them holds, undo a change of its configuration, then run again"
    )]
    Rejected {
        /// git's own words, without the target's path.
        cause: String,
    },
    /// git or the disk failed.
    #[error(transparent)]
    Git(#[from] GitError),
}

/// The ref of a landing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LandState {
    /// Nothing.
    Absent,
    /// The commit of this landing.
    Ours,
    /// Another commit: another user moved or created it.
    Theirs(String),
}

/// The result of undoing a landing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unlanded {
    /// Nothing of it is left.
    NoTrace,
    /// The ref is deleted. The objects stay, because other refs depend on them or git has repacked them; git's own
    /// maintenance removes them once they are unreachable.
    ObjectsKept,
    /// The ref was moved to this commit, so it belongs to another user now. Nothing was removed.
    RefMoved(String),
    /// The branch is checked out. Nothing was removed: without its ref HEAD would be invalid.
    CheckedOut,
}
