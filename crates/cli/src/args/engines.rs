//! Arguments of `herma engines`.

use clap::{Args, Subcommand};
use herma_core::engine::EngineName;

/// Arguments of `herma engines`.
#[derive(Debug, Args)]
pub struct EnginesArgs {
    /// What to do; they are listed if nothing is said.
    #[command(subcommand)]
    pub command: Option<Engines>,
}

/// Commands about engines.
#[derive(Debug, Subcommand)]
pub enum Engines {
    /// List every engine: whether it is on, admitted, and what it has proven
    List,
    /// Install an engine's agent from its registry, inside the sandbox, and draft its admission
    Install(InstallEngine),
    /// Switch an engine on; it still needs its admission and its proofs
    Enable {
        /// The engine
        name: EngineName,
    },
    /// Switch an engine off: no run of it starts any more
    Disable {
        /// The engine
        name: EngineName,
    },
}

/// Arguments of `herma engines install`.
#[derive(Debug, Args)]
pub struct InstallEngine {
    /// The engine
    pub name: EngineName,
    /// Another exact version than the one that herma was tried with, or that settings.yaml names
    #[arg(long, value_name = "VERSION")]
    pub pin: Option<String>,
    /// The registry that npm or pip is configured with lies in a network of your own
    #[arg(long)]
    pub own_network: bool,
}
