//! Approvals: their binding, the packet that a person reads, the request, the ruling, and the use by one run.

mod bind;
mod error;
mod fold;
mod packet;
mod page;
mod request;
mod ruling;
mod signatures;
#[cfg(test)]
mod tests;
mod usable;

pub use bind::{BindingInput, bind};
pub use error::ApprovalError;
pub use packet::{BadRequest, Packet, not_too_long};
pub use request::{Asker, RequestTerms, request};
pub use ruling::{RulingContext, rule};
pub use signatures::SignatureCheck;
pub use usable::{Consumption, UsableApproval, consume, find_usable};
