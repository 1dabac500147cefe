//! The command lines that list and show runs.

use clap::{Args, ValueEnum};
use herma_core::Status;
use herma_core::contract::ContractId;
use herma_core::engine::EngineName;

/// Arguments of `herma runs`.
#[derive(Debug, Args)]
pub struct Runs {
    /// Maximum number
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub limit: u32,
    /// Only runs before this one: its id, a prefix of it, its last eight digits, or `last`
    #[arg(long, value_name = "RUN")]
    pub before: Option<String>,
    /// Which runs.
    #[command(flatten)]
    pub selection: Selection,
}

/// Which runs a list is about.
#[derive(Debug, Args)]
pub struct Selection {
    /// Also runs of proofs, comparisons and built-in contracts
    #[arg(long)]
    pub all: bool,
    /// Only runs of the contract with this id
    #[arg(long, value_name = "ID")]
    pub contract: Option<ContractId>,
    /// Only runs of this engine
    #[arg(long, value_name = "NAME")]
    pub engine: Option<EngineName>,
    /// Only runs on this repository: its name, or its path as contracts write it
    #[arg(long, value_name = "NAME")]
    pub repo: Option<String>,
    /// Only runs with this verdict
    #[arg(long, value_enum)]
    pub status: Option<StatusArg>,
    /// Only runs since then: `90m`, `12h`, `2d`, `3w`, or a time such as `2026-01-31T08:00:00Z`
    #[arg(long, value_name = "TIME")]
    pub since: Option<String>,
}

/// A verdict.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum StatusArg {
    /// Every gate held and every check passed
    Pass,
    /// A check failed
    Fail,
    /// Something could not be started or checked
    Blocked,
}

impl From<StatusArg> for Status {
    fn from(arg: StatusArg) -> Self {
        match arg {
            StatusArg::Pass => Self::Pass,
            StatusArg::Fail => Self::Fail,
            StatusArg::Blocked => Self::Blocked,
        }
    }
}

/// Arguments of `herma show`.
#[derive(Debug, Args)]
pub struct Show {
    /// The run: its id, a prefix of it, its last eight digits, or `last`
    #[arg(default_value = "last")]
    pub run: String,
    /// The whole report
    #[arg(long, visible_alias = "report", conflicts_with = "tree")]
    pub full: bool,
    /// Only the tree of its parent and child runs
    #[arg(long)]
    pub tree: bool,
}

/// Arguments of `herma diff`.
#[derive(Debug, Args)]
pub struct Diff {
    /// The run: its id, a prefix of it, its last eight digits, or `last`
    #[arg(default_value = "last")]
    pub run: String,
    /// Only the changed files with the number of their lines
    #[arg(long)]
    pub stat: bool,
}
