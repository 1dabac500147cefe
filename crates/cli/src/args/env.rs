//! Arguments of commands about environments.

use std::ffi::OsString;

use clap::{Args, Subcommand};
use herma_core::units::Bytes;

use super::DestinationArg;

/// Commands about environments.
#[derive(Debug, Subcommand)]
pub enum Env {
    /// Build the environment of a contract, as a run does before its agent starts
    Build(EnvBuild),
    /// Open a shell in the environment of a contract, on a copy of the base, to find out why a test fails
    ///
    /// It has the tools, packages and confinement of verification, and no network. Nothing that it changes is kept.
    Shell(EnvShell),
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

/// Arguments of `herma env shell`.
#[derive(Debug, Args)]
pub struct EnvShell {
    /// The contract; `-` reads it from standard input
    pub contract: String,
    /// Where to run, if the contract does not say it
    #[arg(long, value_enum)]
    pub destination: Option<DestinationArg>,
    /// A program to run in place of a shell, with its arguments
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}
