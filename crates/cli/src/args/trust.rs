//! Arguments of commands about the trust chain.

use std::path::PathBuf;

use clap::Subcommand;

use crate::unlock::UnlockArgs;

/// Commands about the trust chain.
#[derive(Debug, Subcommand)]
pub enum Trust {
    /// Verify the trust chain, and compare it with every bundle and signed admission of this home
    Check {
        /// Compare it with the head that this bundle names; a bundle kept elsewhere shows a rollback of the whole home
        #[arg(long, value_name = "BUNDLE")]
        against: Option<PathBuf>,
    },
    /// Start the trust chain of a home that an earlier version of herma made; an approver signs it, once
    Adopt {
        /// Who adopts.
        #[command(flatten)]
        unlock: UnlockArgs,
    },
}
