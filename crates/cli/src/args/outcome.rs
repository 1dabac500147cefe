//! Arguments of `herma accept` and `herma reject`.

use clap::Args;
use herma_core::admission::Line;

use crate::unlock::UnlockArgs;

/// Arguments of `herma accept`.
#[derive(Debug, Args)]
pub struct Accept {
    /// The run: its id, a prefix of it, its last eight digits, or `last`
    pub run: String,
    /// The reason
    #[arg(long, value_name = "TEXT")]
    pub reason: Option<Line>,
    /// The operator who accepts.
    #[command(flatten)]
    pub unlock: UnlockArgs,
}

/// Arguments of `herma reject`.
#[derive(Debug, Args)]
pub struct Reject {
    /// The run: its id, a prefix of it, its last eight digits, or `last`
    pub run: String,
    /// The reason
    #[arg(long, value_name = "TEXT")]
    pub reason: Line,
    /// The operator who rejects.
    #[command(flatten)]
    pub unlock: UnlockArgs,
}
