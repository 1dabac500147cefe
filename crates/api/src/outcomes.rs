//! The outcome of a run as a row of output.

use herma_core::outcome::{Outcome, OutcomeWord};
use herma_core::signed::Signed;
use herma_core::{Report, Timestamp};
use herma_harness::Installation;
use herma_trust::{OutcomeError, OutcomeStatus};

use crate::output::{OutcomeRow, OutcomeWordNow};

/// The word of a given outcome.
#[must_use]
pub fn given_word(given: &Signed<Outcome>) -> OutcomeWordNow {
    match given.record.outcome {
        OutcomeWord::Accepted => OutcomeWordNow::Accepted,
        OutcomeWord::Rejected => OutcomeWordNow::Rejected,
    }
}

/// The outcome of a run; none for a run that needs none.
pub fn outcome_row(installation: &Installation, report: &Report) -> Result<Option<OutcomeRow>, OutcomeError> {
    Ok(match installation.outcomes().status(report)? {
        OutcomeStatus::NotRequired => None,
        OutcomeStatus::Pending(due) => Some(open_until(OutcomeWordNow::Pending, Some(due))),
        OutcomeStatus::Missing(due) => Some(open_until(OutcomeWordNow::MissingOutcome, Some(due))),
        OutcomeStatus::Given(given) => Some(given_row(&given)),
        OutcomeStatus::Void { claims, why } => {
            let row = claims.as_deref().map_or_else(|| open_until(OutcomeWordNow::Void, None), given_row);
            let claims = claims.as_deref().map(given_word);
            Some(OutcomeRow { state: OutcomeWordNow::Void, claims, void: Some(why), ..row })
        }
    })
}

/// A row without an outcome.
fn open_until(state: OutcomeWordNow, due: Option<Timestamp>) -> OutcomeRow {
    OutcomeRow { state, due, operator: None, decided_at: None, reason: None, claims: None, void: None }
}

/// A row with the content of this outcome.
fn given_row(given: &Signed<Outcome>) -> OutcomeRow {
    let Outcome { operator, decided_at, reason, .. } = given.record.clone();
    OutcomeRow {
        operator: Some(operator),
        decided_at: Some(decided_at),
        reason: Some(reason),
        ..open_until(given_word(given), None)
    }
}
