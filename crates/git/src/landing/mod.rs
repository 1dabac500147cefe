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
mod prepare;
mod reach;
mod refs;
mod target;
mod unland;

pub use disposable::make_disposable;
pub use refs::RefList;

use serde::{Deserialize, Serialize};

use crate::error::GitError;
use crate::git_dir::is_id;

/// Below this all refs lie that herma makes in a target.
const REFS: &str = "refs/heads/herma";

/// What a run is about to bring into its target. It is complete before the target is touched, so whoever has it on
/// disk can tell after a crash what was done, and undo it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Landing {
    /// The ref to make: `refs/heads/herma/<run>`.
    pub reference: String,
    /// The one commit that it will point to.
    pub commit: String,
    /// Its parent: the target's own commit that the run started from.
    pub base: String,
    /// The ref that must still stand there; none if the contract's base is not a ref.
    pub base_ref: Option<BaseRef>,
    /// The commit's tree, which is the tree that was collected.
    pub tree: String,
    /// The pack that brings the new objects, without its extension.
    pub pack: String,
}

/// A ref that the base came from, and where it stood.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BaseRef {
    /// Its full name, or `HEAD` if that is on no branch.
    pub name: String,
    /// What it held: the base commit, or an annotated tag of it.
    pub id: String,
}

impl Landing {
    /// Names become part of paths and of git's input; what was read back from a disk is looked at before that.
    fn check(&self) -> Result<(), GitError> {
        let plain = |text: &str| !text.bytes().any(|b| b.is_ascii_whitespace() || b.is_ascii_control());
        let run = self.reference.strip_prefix(REFS).and_then(|rest| rest.strip_prefix('/'));
        let sound = run
            .is_some_and(|run| run.bytes().all(|b| b.is_ascii_hexdigit() || b == b'-') && !run.is_empty())
            && self.pack.strip_prefix("pack-").is_some_and(is_id)
            && [&self.commit, &self.base, &self.tree].into_iter().all(|id| is_id(id))
            && self.base_ref.as_ref().is_none_or(|base| plain(&base.name) && is_id(&base.id));
        if sound { Ok(()) } else { Err(GitError::unexpected("landing", self.reference.as_bytes())) }
    }
}

/// Why nothing landed. The target is as it was.
#[derive(Debug, thiserror::Error)]
pub enum LandError {
    /// Somebody else has a ref of that name, or one that git cannot keep beside it.
    #[error(
        "the ref `{reference}` is there already and is not of this run: rename or delete it, then run again"
    )]
    RefTaken {
        /// The ref that is in the way.
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
    /// Part of the target has become a link, so that what is written to it would land elsewhere.
    #[error("the target does not lie in one place any more: {what}: put it back, then run again")]
    NotPlain {
        /// What is not plain, by its name in the target.
        what: String,
    },
    /// git or the disk failed.
    #[error(transparent)]
    Git(#[from] GitError),
}

/// What stands under the ref of a landing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LandState {
    /// Nothing.
    Absent,
    /// The commit of this landing.
    Ours,
    /// Another commit: somebody moved it, or made it.
    Theirs(String),
}

/// How far a landing was taken back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unlanded {
    /// Nothing of it is left.
    NoTrace,
    /// The ref is gone. The objects stay, because something of somebody else leans on them or git has put them
    /// elsewhere meanwhile; git's own housekeeping removes them once nothing does.
    ObjectsKept,
    /// Somebody moved the ref to this commit, so it is theirs now. Nothing was removed.
    RefMoved(String),
    /// Somebody has the branch checked out. Nothing was removed: without its ref their HEAD would point nowhere.
    CheckedOut,
}
