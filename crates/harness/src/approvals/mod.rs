//! Approvals: what one is bound to, whether there is one for a run, and what a person sees before granting it.

mod bind;
mod fold;
mod packet;
mod page;
mod present;
#[cfg(test)]
mod tests;
mod witness;

pub(crate) use bind::{BindingInput, bind};
pub use packet::{BadRequest, Packet, not_too_long};
pub(crate) use present::{Present, consume, look};
pub(crate) use witness::Witness;
