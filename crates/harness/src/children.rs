//! Child runs: an agent's herma asks the one outside for a run of its own. The outer herma counts the depth, holds the child to
//! the rules of its parent, runs it beside the parent, and hands back its result.
//!
//! The asking side is inside the sandbox and may say anything: none of it sets the parent or the depth.

mod family;
mod hand;
mod lost;
mod narrow;

pub(crate) use family::Family;
pub(crate) use hand::hand_over;
pub(crate) use lost::tell_of_lost;
