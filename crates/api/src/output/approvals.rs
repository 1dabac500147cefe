//! Output of `herma approvals --json`.

use herma_core::approval::{Approval, ApprovalId, ApprovalState};
use herma_core::approver::ApproverName;
use herma_core::contract::ContractId;
use herma_core::engine::EngineName;
use herma_core::{Stage, Timestamp};
use schemars::JsonSchema;
use serde::Serialize;

/// `herma approvals request|show|grant|deny --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ApprovalOutput {
    /// `herma.approval/v1`.
    pub schema: &'static str,
    /// The approval's name.
    pub approval_id: ApprovalId,
    /// Its current state.
    pub state: ApprovalState,
    /// Why it cannot be used although it was granted, such as an approver who was revoked.
    pub void: Option<String>,
    /// The packet that a person reads before granting, line by line, with invisible characters escaped.
    pub packet: Vec<String>,
    /// The code for exactly this packet, while it can be granted.
    pub code: Option<String>,
    /// The packet as a text to copy into a message, where it was asked for: every line of it is a comment.
    pub copy_text: Option<String>,
    /// The approval as the store holds it.
    pub approval: Approval,
    /// The next step.
    pub next_step: Option<String>,
}

/// `herma approvals list --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ApprovalsOutput {
    /// `herma.approvals/v1`.
    pub schema: &'static str,
    /// Newest first.
    pub approvals: Vec<ApprovalRow>,
}

/// An approval in a list.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ApprovalRow {
    /// Its name.
    pub approval_id: ApprovalId,
    /// Its current state.
    pub state: ApprovalState,
    /// The contract's name.
    pub contract_id: ContractId,
    /// The engine.
    pub engine: EngineName,
    /// The target by its name.
    pub target: String,
    /// The stage.
    pub stage: Stage,
    /// The requester.
    pub requested_by: String,
    /// When.
    pub requested_at: Timestamp,
    /// Until when it can be granted and used.
    pub expires_at: Timestamp,
    /// The approver who ruled on it; none before a ruling.
    pub approver: Option<ApproverName>,
}
