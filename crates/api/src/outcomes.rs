//! Outcomes: the row of output, and the run that an outcome is about.

use herma_core::contract::{self, Target};
use herma_core::outcome::{Outcome, OutcomeWord};
use herma_core::signed::Signed;
use herma_core::store::RunSummary;
use herma_core::{Contract, Report, Timestamp};
use herma_evidence::{ExpectedRun, layout};
use herma_files::read_regular;
use herma_harness::Installation;
use herma_trust::{OutcomeError, OutcomeStatus};

use crate::output::{OutcomeRow, OutcomeWordNow};
use crate::reports::{ReportError, read_report};

/// The run that an outcome is about.
#[derive(Clone, Debug)]
pub struct OutcomeSubject {
    /// Its report.
    pub report: Report,
    /// Its target, as the contract names it.
    pub target: String,
}

/// A run that can have no outcome.
#[derive(Debug, thiserror::Error)]
pub enum SubjectError {
    /// Its report cannot be read.
    #[error(transparent)]
    Report(#[from] ReportError),
    /// Its bundle or its state is against an outcome.
    #[error(transparent)]
    Outcome(#[from] OutcomeError),
}

impl OutcomeSubject {
    /// Reads the report and the target of a finished run.
    pub fn find(installation: &Installation, run: &RunSummary) -> Result<Self, SubjectError> {
        let bundle = installation.home.run(run.run_id).bundle();
        let report = read_report(&bundle)?;
        let expected = ExpectedRun { run_id: run.run_id, contract_digest: Some(run.contract_digest) };
        if let Some(mismatch) = expected.mismatched_report(&report) {
            return Err(OutcomeError::Broken(run.run_id, format!("identity: {mismatch}")).into());
        }
        let contract = read_regular(&bundle.join(layout::CONTRACT), contract::MAX_BYTES).ok();
        let target = match contract.and_then(|bytes| Contract::parse(&bytes).ok()) {
            Some(Contract { terms, .. }) => match terms.target {
                Target::Repo { repo, .. } => repo.to_string(),
                Target::Fixture(name) => format!("fixture:{name}"),
            },
            None => "unknown: the contract in the bundle cannot be read".to_owned(),
        };
        Ok(Self { report, target })
    }

    /// Refuses an outcome that cannot be recorded, before anybody types a passphrase for it.
    pub fn must_be_open(&self, installation: &Installation, word: OutcomeWord) -> Result<(), OutcomeError> {
        let run_id = self.report.run_id;
        match (installation.outcomes().status(&self.report)?, word) {
            // A rejection only removes: an outcome that does not count is no obstacle to it.
            (OutcomeStatus::Pending(_), _)
            // `accept` decides whether a damaged outcome may be given again.
            | (OutcomeStatus::Void { claims: None, .. }, OutcomeWord::Accepted)
            | (OutcomeStatus::Missing(_) | OutcomeStatus::Void { .. }, OutcomeWord::Rejected) => Ok(()),
            (OutcomeStatus::Missing(due), OutcomeWord::Accepted) => {
                Err(OutcomeError::TooLate(run_id, due))
            }
            (OutcomeStatus::Given(given), _) => {
                Err(OutcomeError::Final(run_id, given_word(&given).as_str()))
            }
            (OutcomeStatus::Void { why, .. }, _) => Err(OutcomeError::Void(run_id, why)),
            (OutcomeStatus::NotRequired, _) => Err(OutcomeError::NotRequired(run_id)),
        }
    }
}

/// The state of a given outcome.
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
