//! Who can say whether a signature is an approver's.

use herma_model::approval::{ApprovalRequest, Ruling};
use herma_model::approver::ApproverName;
use herma_model::signed::Signed;

use crate::approvers::Approvers;

/// Says whether signatures are by whom the records name. An error says why not.
pub(crate) trait Witness {
    /// The ruling is signed by the approver that it names, who is trusted and not revoked.
    fn ruling(&self, signed: &Signed<Ruling>) -> Result<(), String>;

    /// The request is signed by the approver that it names as who asks, who is trusted and not revoked.
    fn request(&self, signed: &Signed<ApprovalRequest>) -> Result<(), String>;
}

impl Witness for Approvers {
    fn ruling(&self, signed: &Signed<Ruling>) -> Result<(), String> {
        self.check(signed, &signed.record.approver)
    }

    fn request(&self, signed: &Signed<ApprovalRequest>) -> Result<(), String> {
        let name: ApproverName = signed.record.requested_by.parse()?;
        self.check(signed, &name)
    }
}
