//! The way of a run to everything but its model: what the installation allows besides the contract, the proxy that is
//! started for the run, and what it decided.

mod error;
mod files;
mod grants;
mod learned;
mod list;
mod plan;
mod recorder;
mod service;

pub use error::EgressError;
pub use files::EgressFiles;
pub use grants::{GrantState, KnownGrant};
pub use learned::Proposal;
pub use list::{InstallationList, SignedBy};
pub use plan::{Allowed, EgressOfRun, check_contract};

pub(crate) use plan::{EgressPlan, look};
pub(crate) use recorder::recover;
pub(crate) use service::{RunEgress, end, start};
