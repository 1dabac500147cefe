//! Installs an agent: its package is fetched inside the sandbox, where only its registry can be reached, and kept as a
//! read-only tree that is named by its digest.

mod denials;
mod error;
mod fetch;
mod fetcher;
mod host_tools;
mod install;
mod npm;
mod pip;
mod python;

pub use error::InstallError;
pub use host_tools::HostTools;
pub use install::{InstallOrder, InstalledTree, Installer};
