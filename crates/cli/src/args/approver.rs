//! Arguments of commands about approvers.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use herma_core::approver::ApproverName;

/// Commands about approvers.
#[derive(Debug, Subcommand)]
pub enum Approver {
    /// Make an approver's key; the first approver vouches for itself, each later one is let in by another
    Init(ApproverInit),
    /// List the approvers and whether they are trusted
    List,
    /// Take an approver's trust away, for ever; whom it let in before stays
    Revoke {
        /// Who
        name: ApproverName,
        /// Why
        #[arg(long, value_name = "TEXT")]
        reason: String,
        /// Also if nobody is trusted after it; then nothing can be granted, admitted or accepted here, ever
        #[arg(long)]
        last: bool,
    },
}

/// Arguments of `herma approver init`.
#[derive(Debug, Args)]
pub struct ApproverInit {
    /// A name that was never used here before
    pub name: ApproverName,
    /// Print the key as a token for automation, and keep it nowhere
    #[arg(long)]
    pub token: bool,
    /// A file whose first line is the new passphrase; asked for on the terminal otherwise
    #[arg(long, value_name = "FILE", conflicts_with = "token")]
    pub passphrase_file: Option<PathBuf>,
    /// The approver who lets the new one in; the one of `HERMA_APPROVER_TOKEN` otherwise
    #[arg(long, value_name = "NAME")]
    pub by: Option<ApproverName>,
    /// A file whose first line is that approver's passphrase; asked for on the terminal otherwise
    #[arg(long, value_name = "FILE")]
    pub by_passphrase_file: Option<PathBuf>,
}
