//! Arguments of `herma discard`, `herma gc` and `herma export`.

use std::path::PathBuf;

use clap::Args;
use herma_api::Age;

/// Arguments of `herma discard`.
#[derive(Debug, Args)]
pub struct Discard {
    /// The run: its id, a prefix of it, its last eight digits, or `last`
    pub run: String,
}

/// Arguments of `herma gc`.
#[derive(Debug, Args)]
pub struct Gc {
    /// Workspaces and sessions of runs that ended, and environments that were used, longer ago than this
    #[arg(long, value_name = "AGE", default_value = "14d")]
    pub older_than: Age,
    /// Also bundles of runs that ended longer ago than this, if no record names them
    #[arg(long, value_name = "AGE")]
    pub bundles_older_than: Option<Age>,
    /// Only list what would be removed
    #[arg(long, conflicts_with = "yes")]
    pub dry_run: bool,
    /// Remove what is listed without asking
    #[arg(long)]
    pub yes: bool,
}

/// Arguments of `herma export`.
#[derive(Debug, Args)]
pub struct Export {
    /// The runs: each by its id, a prefix of it, its last eight digits, or `last`
    #[arg(required = true, value_name = "RUN")]
    pub runs: Vec<String>,
    /// The archive to write; an existing file is never overwritten
    #[arg(long, short, value_name = "FILE")]
    pub output: PathBuf,
    /// Also the bundles of their child runs
    #[arg(long)]
    pub children: bool,
}
