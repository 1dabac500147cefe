//! Child runs: a herma inside a run asks the one outside for a run of its own. The outer one counts how deep that is, holds
//! the child to what its parent may do, runs it beside the parent, and hands back what it made.
//!
//! Whoever asks is inside, and may say anything: nothing of what it says sets the parent or the depth.

mod ask;
mod door;
mod family;
mod hand;
mod lost;
mod narrow;
mod snapshot;

pub use ask::{ChildAnswer, ChildAsk, HandedFile, SOCKET_VARIABLE, WORKSPACE_VARIABLE};

pub(crate) use ask::question;
pub(crate) use door::ChildDoor;
pub(crate) use family::{ChildOf, Family, MOST_DEEP};
pub(crate) use hand::hand_over;
pub(crate) use lost::tell_of_lost;
pub(crate) use snapshot::baseline;
