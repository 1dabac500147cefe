//! Arguments of `herma summary`, `herma health` and `herma matrix`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use herma_core::Blocker;

/// Arguments of `herma matrix`.
#[derive(Debug, Args)]
pub struct Matrix {
    /// Only the row of this blocker; can be repeated. A run of some rows is not recorded
    #[arg(long = "row", value_name = "BLOCKER", value_parser = parse_blocker)]
    pub rows: Vec<Blocker>,
    /// Write `report.json` into this directory too
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<PathBuf>,
}

fn parse_blocker(text: &str) -> Result<Blocker, String> {
    let known = Blocker::ALL.iter().find(|blocker| blocker.as_str() == text);
    known.copied().ok_or_else(|| "herma has no such blocker; docs/failure-matrix.md lists them".to_owned())
}

/// Arguments of `herma health`.
#[derive(Debug, Args)]
pub struct Health {
    /// Stop at the first check that fails
    #[arg(long)]
    pub fail_fast: bool,
    /// Leave the failure matrix out. Then health is never green
    #[arg(long)]
    pub skip_matrix: bool,
}

/// Arguments of `herma summary`.
#[derive(Debug, Args)]
pub struct Summary {
    /// Check a summary instead of making one
    #[command(subcommand)]
    pub command: Option<SummaryCommand>,
}

/// Other operations on a summary.
#[derive(Debug, Subcommand)]
pub enum SummaryCommand {
    /// Check a control summary against the records of this installation
    Check(SummaryCheck),
}

/// Arguments of `herma summary check`.
#[derive(Debug, Args)]
pub struct SummaryCheck {
    /// The summary, or `-` for standard input
    pub file: PathBuf,
}
