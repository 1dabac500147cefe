//! The command line of `herma usage`.

use clap::{Args, ValueEnum};
use herma_core::store::UsageBy;

use super::Selection;

/// Arguments of `herma usage`.
#[derive(Debug, Args)]
pub struct Usage {
    /// Group by
    #[arg(long, value_enum, default_value = "run")]
    pub by: UsageByArg,
    /// Which runs.
    #[command(flatten)]
    pub selection: Selection,
}

/// The grouping of usage.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum UsageByArg {
    /// Each run, newest first
    Run,
    /// Each engine
    Engine,
    /// Each model, as UPSTREAM/MODEL
    Model,
    /// Each day in UTC, newest first
    Day,
}

impl From<UsageByArg> for UsageBy {
    fn from(arg: UsageByArg) -> Self {
        match arg {
            UsageByArg::Run => Self::Run,
            UsageByArg::Engine => Self::Engine,
            UsageByArg::Model => Self::Model,
            UsageByArg::Day => Self::Day,
        }
    }
}
