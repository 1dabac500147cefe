//! Whether a signature under a request or a ruling is that of a trusted approver.

use std::sync::Arc;

use herma_core::approval::{ApprovalRequest, Ruling};
use herma_core::approver::ApproverName;
use herma_core::signed::Signed;
use herma_evidence::signed;

use crate::approvers::{Approvers, Distrust};

/// Checks the signatures under requests and rulings. An error says why one does not count.
pub trait SignatureCheck {
    /// The ruling is signed by the approver that it names, who is trusted and not revoked.
    fn ruling(&self, signed: &Signed<Ruling>) -> Result<(), Distrust>;

    /// The request is signed by the approver that it names as its requester, who is trusted and not revoked.
    fn request(&self, signed: &Signed<ApprovalRequest>) -> Result<(), Distrust>;
}

impl SignatureCheck for Approvers {
    fn ruling(&self, signed: &Signed<Ruling>) -> Result<(), Distrust> {
        let Ruling { id, answer, approver, trust_head, .. } = &signed.record;
        self.check(signed, approver)?;
        let chain = self.chain_of(*trust_head)?;
        let digest = signed::digest(&signed.record).map_err(|e| Distrust::Record(Arc::new(e)))?;
        match chain.ruling(*id) {
            Some(current) if current == (*answer, digest) => Ok(()),
            Some(_) => Err(Distrust::Replaced),
            None => Err(Distrust::NotInChain),
        }
    }

    fn request(&self, signed: &Signed<ApprovalRequest>) -> Result<(), Distrust> {
        let name: ApproverName = signed.record.requested_by.parse().map_err(Distrust::BadName)?;
        self.check(signed, &name)
    }
}
