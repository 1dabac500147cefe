//! Arguments of commands about approvers.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use herma_core::approver::ApproverName;

/// Commands about approvers.
#[derive(Debug, Subcommand)]
pub enum Approver {
    /// Create an approver; a trusted approver must add every one but the first
    Init(ApproverInit),
    /// List the approvers and whether they are trusted
    List,
    /// Revoke an approver permanently; approvers that it added stay
    Revoke {
        /// The approver
        name: ApproverName,
        /// The reason
        #[arg(long, value_name = "TEXT")]
        reason: String,
        /// Also if no trusted approver is left; this installation can then never grant, admit or accept again
        #[arg(long)]
        last: bool,
    },
}

/// Arguments of `herma approver init`.
#[derive(Debug, Args)]
pub struct ApproverInit {
    /// A name that was never used in this installation
    pub name: ApproverName,
    /// Print the key as a token for automation, and do not store it
    #[arg(long)]
    pub token: bool,
    /// A file whose first line is the new passphrase (default: ask)
    #[arg(long, value_name = "FILE", conflicts_with = "token")]
    pub passphrase_file: Option<PathBuf>,
    /// The approver who adds the new one (default: the one of `HERMA_APPROVER_TOKEN`)
    #[arg(long, value_name = "NAME")]
    pub by: Option<ApproverName>,
    /// A file whose first line is that approver's passphrase (default: ask)
    #[arg(long, value_name = "FILE")]
    pub by_passphrase_file: Option<PathBuf>,
}
