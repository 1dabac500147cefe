//! The command line of `herma router`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use herma_router::endpoint::Endpoint;

/// Arguments of `herma router`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct Router {
    /// The configuration (default: `router.toml` in herma's home)
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Another command than to serve.
    #[command(subcommand)]
    pub command: Option<RouterCommand>,
}

/// Commands about a router's configuration, besides serving it.
#[derive(Debug, Subcommand)]
pub enum RouterCommand {
    /// Check a configuration: keys, models, budgets
    Check {
        /// The configuration
        config: PathBuf,
    },
    /// Test a model: content, streaming, tool calls
    Probe {
        /// UPSTREAM/MODEL: the upstream's name in the configuration, and its name of the model
        #[arg(value_name = "PROVIDER/MODEL")]
        model: String,
        /// The configuration (default: `router.toml` in herma's home)
        #[arg(long, value_name = "FILE")]
        config: Option<PathBuf>,
        /// Use only this API
        #[arg(long, value_enum)]
        api: Option<ApiArg>,
    },
    /// Print a complete example configuration
    Example,
}

/// An API at which a model converses.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum ApiArg {
    /// Chat Completions
    Chat,
    /// Responses
    Responses,
    /// Anthropic Messages
    Messages,
}

impl From<ApiArg> for Endpoint {
    fn from(arg: ApiArg) -> Self {
        match arg {
            ApiArg::Chat => Self::Chat,
            ApiArg::Responses => Self::Responses,
            ApiArg::Messages => Self::Messages,
        }
    }
}
