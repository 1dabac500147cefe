//! What commands about approvers print.

use herma_core::approver::{ApproverRecord, Revocation};
use schemars::JsonSchema;
use serde::Serialize;

/// `herma approver init|revoke --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ApproverOutput {
    /// `herma.approver-shown/v1`.
    pub schema: &'static str,
    /// The approver.
    pub approver: ApproverItem,
    /// The token of a new key for automation. It is shown this once and kept nowhere.
    pub token: Option<String>,
}

/// `herma approver list --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ApproversOutput {
    /// `herma.approvers/v1`.
    pub schema: &'static str,
    /// Everybody who was ever let in, by name.
    pub approvers: Vec<ApproverItem>,
}

/// An approver, and whether it is trusted.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ApproverItem {
    /// What was signed about it when it was let in.
    pub record: ApproverRecord,
    /// Whether its signatures count.
    pub trusted: bool,
    /// Why they do not.
    pub why_not: Option<String>,
    /// That its key must not be believed any more.
    pub revoked: Option<Revocation>,
}
