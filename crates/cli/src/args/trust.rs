//! Arguments of commands about the trust chain.

use std::path::PathBuf;

use clap::Subcommand;

use crate::unlock::UnlockArgs;

/// Commands about the trust chain.
#[derive(Debug, Subcommand)]
pub enum Trust {
    /// Verify the trust chain against every bundle and signed admission of this home
    Check {
        /// Compare it with the head in this bundle; a bundle kept elsewhere shows a rollback of the home
        #[arg(long, value_name = "BUNDLE")]
        against: Option<PathBuf>,
    },
    /// Start the trust chain of a home from an earlier version; an approver signs it
    Adopt {
        /// The approver who adopts the home.
        #[command(flatten)]
        unlock: UnlockArgs,
    },
}
