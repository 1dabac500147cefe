//! Whether a signature under a request or a ruling is that of a trusted approver.

use herma_core::approval::{ApprovalRequest, Ruling};
use herma_core::approver::ApproverName;
use herma_core::signed::Signed;
use herma_evidence::signed;

use crate::approvers::Approvers;

/// Checks the signatures under requests and rulings. An error says why one does not count.
pub trait SignatureCheck {
    /// The ruling is signed by the approver that it names, who is trusted and not revoked.
    fn ruling(&self, signed: &Signed<Ruling>) -> Result<(), String>;

    /// The request is signed by the approver that it names as its requester, who is trusted and not revoked.
    fn request(&self, signed: &Signed<ApprovalRequest>) -> Result<(), String>;
}

impl SignatureCheck for Approvers {
    fn ruling(&self, signed: &Signed<Ruling>) -> Result<(), String> {
        let Ruling { id, answer, approver, trust_head, .. } = &signed.record;
        self.check(signed, approver)?;
        let chain = self.chain_of(*trust_head)?;
        let digest = signed::digest(&signed.record).map_err(|e| e.to_string())?;
        match chain.ruling(*id) {
            Some(current) if current == (*answer, digest) => Ok(()),
            Some(_) => Err("a later ruling on the same approval replaced it".to_owned()),
            None => Err("the trust chain does not name it".to_owned()),
        }
    }

    fn request(&self, signed: &Signed<ApprovalRequest>) -> Result<(), String> {
        let name: ApproverName = signed.record.requested_by.parse()?;
        self.check(signed, &name)
    }
}
