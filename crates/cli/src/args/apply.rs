//! Arguments of `herma apply`.

use std::path::PathBuf;

use clap::Args;

/// Arguments of `herma apply`.
#[derive(Debug, Args)]
pub struct Apply {
    /// The run: its id, a prefix of it, its last eight digits, or `last`
    #[arg(default_value = "last")]
    pub run: String,
    /// Make a new branch with one commit instead; the work tree is not touched
    #[arg(long, value_name = "NAME", conflicts_with = "undo")]
    pub branch: Option<String>,
    /// Take back what was applied of this run, if it has not changed since
    #[arg(long, conflicts_with = "repo")]
    pub undo: bool,
    /// The repository (default: the one around the current directory)
    #[arg(long, value_name = "DIR")]
    pub repo: Option<PathBuf>,
}
