//! Signed egress lists, temporary grants, and the proposals of runs that learn.

mod effective;
mod error;
mod files;
mod grants;
mod learned;
mod list;

pub use effective::{AllowedBy, EffectiveEgress, check_contract};
pub use error::EgressError;
pub use files::EgressFiles;
pub use grants::{GrantState, KnownGrant};
pub use learned::EgressProposal;
pub use list::{InstallationList, SignedBy};
