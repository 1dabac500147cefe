//! Arguments of commands about environments.

use clap::{Args, Subcommand};
use herma_core::units::Bytes;

use super::DestinationArg;

/// Commands about environments.
#[derive(Debug, Subcommand)]
pub enum Env {
    /// Build the environment of a contract, as a run does before its agent starts
    Build(EnvBuild),
    /// List the layers of environments, the least recently used first
    List,
    /// Show how a layer was built
    Show {
        /// The first digits of its key
        #[arg(value_name = "KEY")]
        key: String,
    },
    /// Remove layers, the least recently used first, until the rest fits; one in use stays
    Prune {
        /// The bytes that all layers together may keep, such as `10GiB` or `0B`
        #[arg(long, value_name = "SIZE")]
        max: Bytes,
    },
}

/// Arguments of `herma env build`.
#[derive(Debug, Args)]
pub struct EnvBuild {
    /// The contract; `-` reads it from standard input
    pub contract: String,
    /// Where to build, if the contract does not say it
    #[arg(long, value_enum)]
    pub destination: Option<DestinationArg>,
}
