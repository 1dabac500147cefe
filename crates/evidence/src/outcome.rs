//! Parses an outcome and checks what it refers to. The caller, who knows the approvers, checks its signer.

use herma_core::outcome::{Outcome, OutcomeWord};
use herma_core::report::OutcomeState;
use herma_core::signed::Signed;
use herma_core::{Digest, Report};

/// Reads an outcome; exactly one spelling of it is taken: indented as by `serde_json`, with a line end.
pub fn parse(bytes: &[u8]) -> Result<Signed<Outcome>, String> {
    let signed: Signed<Outcome> = serde_json::from_slice(bytes).map_err(|e| e.to_string())?;
    let mut canonical = serde_json::to_vec_pretty(&signed).map_err(|e| e.to_string())?;
    canonical.push(b'\n');
    if canonical == bytes {
        Ok(signed)
    } else {
        Err("the file is not the canonical form of its record".to_owned())
    }
}

/// Checks that it refers to this run and this evidence, was requested, and was in time. `attestation` is the digest
/// of the bundle's `attestation.json`.
pub fn is_about(outcome: &Outcome, report: &Report, attestation: Option<Digest>) -> Result<(), String> {
    if outcome.run_id != report.run_id {
        return Err(format!("it is the outcome of run {}", outcome.run_id));
    }
    if attestation != Some(outcome.attestation) {
        return Err(format!(
            "it is on other evidence, whose attestation has the digest {}",
            outcome.attestation
        ));
    }
    if report.outcome != OutcomeState::Pending {
        return Err("the run asks for no outcome, and one was given".to_owned());
    }
    match report.outcome_due {
        Some(due) if outcome.outcome == OutcomeWord::Accepted && outcome.decided_at > due => {
            Err(format!("it was accepted at {}, and had to be until {due}", outcome.decided_at))
        }
        _ => Ok(()),
    }
}
