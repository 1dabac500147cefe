//! Arguments of `herma approvals`.

use clap::{Args, Subcommand};
use herma_core::admission::Line;
use herma_core::engine::EngineName;

use crate::args::DestinationArg;
use crate::unlock::UnlockArgs;

/// Commands about approvals.
#[derive(Debug, Subcommand)]
pub enum Approvals {
    /// Ask for an approval of exactly this contract, engine and target
    Request(RequestApproval),
    /// List approvals, newest first
    List(ListApprovals),
    /// Show an approval: all that it is a yes to, where it stands, and who said what
    Show(ShowApproval),
    /// Say yes, as an approver: shows the whole packet and asks for the code that is printed with it
    Grant(Grant),
    /// Say no, as an approver; that is final
    Deny(Deny),
}

/// Arguments of `herma approvals request`.
#[derive(Debug, Args)]
pub struct RequestApproval {
    /// The contract's file, or `fixture:NAME` for a built-in one
    pub contract: String,
    /// The engine
    #[arg(long, value_name = "NAME", default_value = EngineName::DEFAULT)]
    pub engine: EngineName,
    /// Where to run, if the contract does not say it; one that it contradicts is refused
    #[arg(long, value_enum)]
    pub destination: Option<DestinationArg>,
    /// Why
    #[arg(long, value_name = "TEXT")]
    pub reason: Line,
    /// Who asks, where the request is signed.
    #[command(flatten)]
    pub unlock: UnlockArgs,
}

/// Arguments of `herma approvals list`.
#[derive(Debug, Args)]
pub struct ListApprovals {
    /// Also those that nobody can grant or use any more: denied, expired, consumed
    #[arg(long)]
    pub all: bool,
    /// At most this many
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub limit: u32,
}

/// Arguments of `herma approvals show`.
#[derive(Debug, Args)]
pub struct ShowApproval {
    /// The approval: its name, the start of it, its last eight digits, or `last`
    #[arg(value_name = "ID", default_value = "last")]
    pub id: String,
    /// Only the packet, as a text to copy into a message; it does nothing where it is pasted by mistake
    #[arg(long)]
    pub copy: bool,
}

/// Arguments of `herma approvals grant`.
#[derive(Debug, Args)]
pub struct Grant {
    /// The approval: its name, the start of it, its last eight digits, or `last`
    #[arg(value_name = "ID")]
    pub id: String,
    /// Why
    #[arg(long, value_name = "TEXT")]
    pub reason: Line,
    /// The code that is printed with exactly this packet; asked for otherwise
    #[arg(long, value_name = "CODE")]
    pub code: Option<String>,
    /// Who says yes.
    #[command(flatten)]
    pub unlock: UnlockArgs,
}

/// Arguments of `herma approvals deny`.
#[derive(Debug, Args)]
pub struct Deny {
    /// The approval: its name, the start of it, its last eight digits, or `last`
    #[arg(value_name = "ID")]
    pub id: String,
    /// Why
    #[arg(long, value_name = "TEXT")]
    pub reason: Line,
    /// Who says no.
    #[command(flatten)]
    pub unlock: UnlockArgs,
}
