//! Checks the outcome. It comes after the attestation, so it has its own signature: an approver signed it, and it
//! names the attestation that it refers to.

use herma_core::outcome::{Outcome, OutcomeWord};
use herma_core::report::OutcomeState;
use herma_core::signed::Signed;

use super::check::Good;
use super::pass::BundleContents;
use super::{Trust, TrustedApprover};
use crate::{layout, outcome as word, signed};

/// An approver said it, of this evidence and of no other, and it was asked for.
pub(super) fn outcome(seen: &BundleContents, trust: &Trust) -> Result<Good, String> {
    let report = seen.report()?;
    let Some(bytes) = &seen.outcome else {
        let open = if report.outcome == OutcomeState::Pending { "pending" } else { "not required" };
        return Ok(Good::NotApplicable(open.to_owned()));
    };
    let given = word::parse(bytes.as_ref().map_err(Clone::clone)?).map_err(|bad| bad.to_string())?;
    let attestation = seen.files.get(layout::ATTESTATION).map(|(digest, _)| *digest);
    word::is_about(&given.record, report, attestation).map_err(|other| other.to_string())?;
    let signer = signer(&given, &trust.approvers)?;
    signed::check(&given, &signer.key).map_err(|bad| bad.to_string())?;
    let word = match given.record.outcome {
        OutcomeWord::Accepted => "accepted",
        OutcomeWord::Rejected => "rejected",
    };
    Ok(Good::Passed(format!("{word} by {}, signed with {}", given.record.operator, given.key_id)))
}

/// The signer, if it is the named approver: none signs in another's name.
fn signer<'a>(
    given: &Signed<Outcome>,
    approvers: &'a [TrustedApprover],
) -> Result<&'a TrustedApprover, String> {
    let (key_id, operator) = (given.key_id, &given.record.operator);
    let known: Vec<_> = approvers.iter().filter(|approver| approver.key.key_id() == key_id).collect();
    let Some(first) = known.first() else {
        return Err(format!(
            "the signer {key_id} is not known as an approver; give its public key if you trust it"
        ));
    };
    let is_named = |approver: &&&TrustedApprover| approver.name.as_ref().is_none_or(|name| name == operator);
    known.iter().find(is_named).copied().ok_or_else(|| {
        let owner = first.name.as_ref().map_or_else(String::new, ToString::to_string);
        format!("it names {operator} as its operator, and {owner} signed it")
    })
}
