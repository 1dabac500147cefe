//! The command line of `herma do`.

use std::path::PathBuf;

use clap::Args;
use herma_core::admission::ModelRef;
use herma_core::contract::Pattern;
use herma_core::defaults::PartialLimits;
use herma_core::engine::EngineName;

use super::DestinationArg;

/// Arguments of `herma do`.
#[derive(Debug, Args)]
pub struct Do {
    /// The task, as you would give it to a colleague; with --continue a message to the agent
    pub task: String,
    /// A path that may change, as a gitignore-style glob; repeat it for more
    #[arg(long, value_name = "GLOB", conflicts_with = "continue_run")]
    pub allow: Vec<Pattern>,
    /// A command that must exit with 0 on a fresh checkout with the result; repeat it for more
    #[arg(long, value_name = "CMD", conflicts_with = "continue_run")]
    pub verify: Vec<String>,
    /// The engine
    #[arg(long, value_name = "NAME", conflicts_with = "continue_run")]
    pub engine: Option<EngineName>,
    /// The model
    #[arg(long, value_name = "PROVIDER/MODEL", conflicts_with = "continue_run")]
    pub model: Option<ModelRef>,
    /// A limit, such as `total=15m`, `tokens=200k` or `usd=2.50`; repeat it for more
    #[arg(long, value_name = "NAME=VALUE", conflicts_with = "continue_run")]
    pub limit: Vec<PartialLimits>,
    /// The destination
    #[arg(long, value_enum, conflicts_with = "continue_run")]
    pub destination: Option<DestinationArg>,
    /// The repository: a directory in it
    #[arg(long, value_name = "DIR", default_value = ".", conflicts_with = "continue_run")]
    pub repo: PathBuf,
    /// The script that `fake` plays
    #[arg(long, value_name = "FILE", conflicts_with = "continue_run")]
    pub script: Option<PathBuf>,
    /// Continue this run with the agent's session: its id, a prefix of it, its last eight digits, or `last`
    #[arg(long = "continue", value_name = "RUN")]
    pub continue_run: Option<String>,
    /// Continue in the workspace in which that run was interrupted
    #[arg(long, requires = "continue_run", conflicts_with = "from_base")]
    pub from_workspace: bool,
    /// Continue from that run's patch, or its base, and leave a kept workspace aside
    #[arg(long, requires = "continue_run")]
    pub from_base: bool,
    /// Evaluate the gates, build the environment and run the verification commands on the base; start no engine and call no model
    #[arg(long, conflicts_with = "continue_run")]
    pub dry_run: bool,
}
