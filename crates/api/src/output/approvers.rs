//! Output of commands about approvers.

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
    /// Every approver, revoked ones too, by name.
    pub approvers: Vec<ApproverItem>,
}

/// An approver, and whether it is trusted.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ApproverItem {
    /// The record that was signed when the approver was added.
    pub record: ApproverRecord,
    /// Whether its signatures count.
    pub trusted: bool,
    /// Why they do not.
    pub why_not: Option<String>,
    /// That its key must not be believed any more.
    pub revoked: Option<Revocation>,
}
