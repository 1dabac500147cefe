//! The check of the operator's word. It comes after the attestation, so it vouches for itself: an approver signed it,
//! and it names the attestation that it is about.

use herma_model::outcome::{Outcome, OutcomeWord};
use herma_model::report::OutcomeState;
use herma_model::signed::Signed;

use super::Trust;
use super::check::Good;
use super::pass::Seen;
use crate::{layout, signed};

/// An approver said it, of this evidence and of no other, and it was asked for.
pub(super) fn outcome(seen: &Seen, trust: &Trust) -> Result<Good, String> {
    let report = seen.report()?;
    let pending = report.outcome == OutcomeState::Pending;
    let Some(bytes) = &seen.outcome else {
        let open = if pending { "pending" } else { "not required" };
        return Ok(Good::NotApplicable(open.to_owned()));
    };
    let signed = parse(bytes.as_ref().map_err(Clone::clone)?)?;
    let outcome = &signed.record;
    if outcome.run_id != report.run_id {
        return Err(format!("it is the outcome of run {}", outcome.run_id));
    }
    let attestation = seen.files.get(layout::ATTESTATION).map(|(digest, _)| *digest);
    if attestation != Some(outcome.attestation) {
        return Err(format!(
            "it is on other evidence, whose attestation has the digest {}",
            outcome.attestation
        ));
    }
    if !pending {
        return Err("the run asks for no outcome, and one was given".to_owned());
    }
    if let Some(due) = report.outcome_due
        && outcome.outcome == OutcomeWord::Accepted
        && outcome.decided_at > due
    {
        return Err(format!("it was accepted at {}, and had to be until {due}", outcome.decided_at));
    }
    let Some(key) = trust.approvers.iter().find(|key| key.key_id() == signed.key_id) else {
        return Err(format!(
            "the signer {} is not known as an approver; give its public key if you trust it",
            signed.key_id
        ));
    };
    signed::check(&signed, key).map_err(|bad| bad.to_string())?;
    let word = match outcome.outcome {
        OutcomeWord::Accepted => "accepted",
        OutcomeWord::Rejected => "rejected",
    };
    Ok(Good::Passed(format!("{word} by {}, signed with {}", outcome.operator, signed.key_id)))
}

/// Reads an outcome; exactly one spelling of it is taken: indented as by `serde_json`, with a line end.
fn parse(bytes: &[u8]) -> Result<Signed<Outcome>, String> {
    let signed: Signed<Outcome> = serde_json::from_slice(bytes).map_err(|e| e.to_string())?;
    let mut canonical = serde_json::to_vec_pretty(&signed).map_err(|e| e.to_string())?;
    canonical.push(b'\n');
    if canonical == bytes {
        Ok(signed)
    } else {
        Err("the file is not the canonical form of its record".to_owned())
    }
}
