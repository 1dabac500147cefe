//! Arguments of `herma engines`.

use clap::{Args, Subcommand};
use herma_core::engine::EngineName;

/// Arguments of `herma engines`.
#[derive(Debug, Args)]
pub struct EnginesArgs {
    /// The command; they are listed without one.
    #[command(subcommand)]
    pub command: Option<Engines>,
}

/// Commands about engines.
#[derive(Debug, Subcommand)]
pub enum Engines {
    /// List engines: enabled, admitted, proven stages
    List,
    /// Install an engine's agent from its registry, inside the sandbox, and draft its admission
    Install(InstallEngine),
    /// Enable an engine; it still needs its admission and its proofs
    Enable {
        /// The engine
        name: EngineName,
    },
    /// Disable an engine: no further run of it starts
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
    /// An exact version (default: the tested one, or the one in settings.yaml)
    #[arg(long, value_name = "VERSION")]
    pub pin: Option<String>,
    /// Permit a registry of npm or pip in your private network
    #[arg(long)]
    pub own_network: bool,
}
