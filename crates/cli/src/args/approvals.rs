//! Arguments of `herma approvals`.

use clap::{Args, Subcommand};
use herma_core::admission::Line;
use herma_core::engine::EngineName;

use crate::args::DestinationArg;
use crate::unlock::UnlockArgs;

/// Commands about approvals.
#[derive(Debug, Subcommand)]
pub enum Approvals {
    /// Request an approval for this contract, engine and target
    Request(RequestApproval),
    /// List approvals, newest first
    List(ListApprovals),
    /// Show an approval: its packet, state and rulings
    Show(ShowApproval),
    /// Grant an approval: shows the packet and asks for the code printed with it
    Grant(Grant),
    /// Deny an approval; final
    Deny(Deny),
}

/// Arguments of `herma approvals request`.
#[derive(Debug, Args)]
pub struct RequestApproval {
    /// The contract file, or `fixture:NAME` for a built-in contract
    pub contract: String,
    /// The engine
    #[arg(long, value_name = "NAME", default_value = EngineName::DEFAULT)]
    pub engine: EngineName,
    /// The destination, if the contract names none; must not contradict the contract
    #[arg(long, value_enum)]
    pub destination: Option<DestinationArg>,
    /// The reason
    #[arg(long, value_name = "TEXT")]
    pub reason: Line,
    /// The requester who signs the request.
    #[command(flatten)]
    pub unlock: UnlockArgs,
}

/// Arguments of `herma approvals list`.
#[derive(Debug, Args)]
pub struct ListApprovals {
    /// Include denied, expired and consumed approvals
    #[arg(long)]
    pub all: bool,
    /// Maximum number
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub limit: u32,
}

/// Arguments of `herma approvals show`.
#[derive(Debug, Args)]
pub struct ShowApproval {
    /// The approval: its id, a prefix of it, its last eight digits, or `last`
    #[arg(value_name = "ID", default_value = "last")]
    pub id: String,
    /// Only the packet, as text for a message; pasting it into a shell does nothing
    #[arg(long)]
    pub copy: bool,
}

/// Arguments of `herma approvals grant`.
#[derive(Debug, Args)]
pub struct Grant {
    /// The approval: its id, a prefix of it, its last eight digits, or `last`
    #[arg(value_name = "ID")]
    pub id: String,
    /// The reason
    #[arg(long, value_name = "TEXT")]
    pub reason: Line,
    /// The code printed with this packet (default: ask)
    #[arg(long, value_name = "CODE")]
    pub code: Option<String>,
    /// The approver who grants it.
    #[command(flatten)]
    pub unlock: UnlockArgs,
}

/// Arguments of `herma approvals deny`.
#[derive(Debug, Args)]
pub struct Deny {
    /// The approval: its id, a prefix of it, its last eight digits, or `last`
    #[arg(value_name = "ID")]
    pub id: String,
    /// The reason
    #[arg(long, value_name = "TEXT")]
    pub reason: Line,
    /// The approver who denies it.
    #[command(flatten)]
    pub unlock: UnlockArgs,
}
