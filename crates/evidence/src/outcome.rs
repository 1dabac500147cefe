//! Parses an outcome and checks what it refers to. The caller, who knows the approvers, checks its signer.

use herma_core::outcome::{Outcome, OutcomeWord};
use herma_core::report::OutcomeState;
use herma_core::signed::Signed;
use herma_core::{Digest, Report, RunId, Timestamp};

use crate::bad_record::{BadRecord, read_canonical};

/// Reads an outcome; exactly one spelling of it is accepted: indented as by `serde_json`, with a line end.
pub fn parse(bytes: &[u8]) -> Result<Signed<Outcome>, BadRecord> {
    read_canonical(bytes, "an outcome", |signed: &Signed<Outcome>| {
        let mut canonical = serde_json::to_vec_pretty(signed)?;
        canonical.push(b'\n');
        Ok(canonical)
    })
}

/// Why an outcome does not count for a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OutcomeMismatch {
    /// It names another run.
    #[error("it is the outcome of run {0}")]
    Run(RunId),
    /// It names another attestation.
    #[error("it is on other evidence, whose attestation has the digest {0}")]
    Evidence(Digest),
    /// The run has no pending outcome.
    #[error("the run asks for no outcome, and one was given")]
    Unrequested,
    /// It came too late.
    #[error("it was accepted at {decided_at}, and had to be until {due}")]
    Late {
        /// When it was accepted.
        decided_at: Timestamp,
        /// The latest time.
        due: Timestamp,
    },
}

/// Checks that it refers to this run and this evidence, was requested, and was in time. `attestation` is the digest
/// of the bundle's `attestation.json`.
pub fn is_about(
    outcome: &Outcome,
    report: &Report,
    attestation: Option<Digest>,
) -> Result<(), OutcomeMismatch> {
    if outcome.run_id != report.run_id {
        return Err(OutcomeMismatch::Run(outcome.run_id));
    }
    if attestation != Some(outcome.attestation) {
        return Err(OutcomeMismatch::Evidence(outcome.attestation));
    }
    if report.outcome != OutcomeState::Pending {
        return Err(OutcomeMismatch::Unrequested);
    }
    match report.outcome_due {
        Some(due) if outcome.outcome == OutcomeWord::Accepted && outcome.decided_at > due => {
            Err(OutcomeMismatch::Late { decided_at: outcome.decided_at, due })
        }
        _ => Ok(()),
    }
}
