//! Finds the run that a person names, and lists runs.

use herma_core::store::{RunQuery, RunSummary, StoreError};
use herma_core::{RunId, Status, Timestamp};
use herma_evidence::ExpectedRun;
use herma_harness::Installation;

use crate::outcomes::outcome_row;
use crate::output::{OutcomeRow, RunRow};
use crate::reports::read_report;

/// The name of the newest run.
const LAST: &str = "last";

/// No single run has the name.
#[derive(Debug, thiserror::Error)]
pub enum RunLookupError {
    /// The name is empty, as an unset variable of a script is. Every run begins with it.
    #[error("the name of the run is empty")]
    Empty,
    /// Several runs match.
    #[error("more than one run is called `{0}`")]
    Ambiguous(String),
    /// There is no run at all.
    #[error("there is no run yet")]
    NoRun,
    /// No run matches.
    #[error("there is no run called `{0}`")]
    Unknown(String),
    /// The run has not ended.
    #[error("run {0} is still under way, so its evidence is not complete")]
    UnderWay(RunId),
    /// Its bundle was removed by `herma gc`.
    #[error("the bundle of run {0} was removed by gc on {1:.0}")]
    Removed(RunId, Timestamp),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl RunLookupError {
    /// The next step for the user; none where none is known.
    #[must_use]
    pub fn next_step(&self) -> Option<&'static str> {
        Some(match self {
            Self::Empty => "`herma runs` lists the names; `last` is the newest",
            Self::Ambiguous(_) => "give more digits; `herma runs` lists the names",
            Self::NoRun => "start with `herma demo`",
            Self::Unknown(_) => "`herma runs` lists the names",
            Self::UnderWay(_) => {
                "wait until `herma runs` shows its status; `herma watch` follows it until then"
            }
            Self::Removed(..) => {
                "`herma runs` has its verdict; an archive of `herma export` may have its bundle"
            }
            Self::Store(_) => return None,
        })
    }
}

/// Finds a run by its id, the start or the last digits of it, or `last`.
pub fn find_run(installation: &Installation, named: &str) -> Result<RunSummary, RunLookupError> {
    let found = match named {
        "" => return Err(RunLookupError::Empty),
        LAST => {
            let newest = RunQuery { limit: 1, before: None, status: None };
            installation.store.call(|store| store.runs(&newest))?
        }
        part => installation.store.call(|store| store.find_runs(part))?,
    };
    let mut found = found.into_iter();
    match (found.next(), found.next()) {
        (Some(run), None) => Ok(run),
        (Some(_), Some(_)) => Err(RunLookupError::Ambiguous(named.to_owned())),
        (None, _) if named == LAST => Err(RunLookupError::NoRun),
        (None, _) => Err(RunLookupError::Unknown(named.to_owned())),
    }
}

/// The same for a run whose evidence is needed: one that has ended.
pub fn find_finished_run(installation: &Installation, named: &str) -> Result<RunSummary, RunLookupError> {
    let run = find_run(installation, named)?;
    if run.status.is_none() {
        return Err(RunLookupError::UnderWay(run.run_id));
    }
    has_bundle(installation, &run)?;
    Ok(run)
}

/// Refuses a run whose bundle `herma gc` removed: it is not damaged.
pub fn has_bundle(installation: &Installation, run: &RunSummary) -> Result<(), RunLookupError> {
    match installation.home.removed_bundle(run.run_id) {
        Some(removed) => Err(RunLookupError::Removed(run.run_id, removed.removed_at)),
        None => Ok(()),
    }
}

/// The run that the bundle in the run's directory must belong to.
#[must_use]
pub fn expected_run(run: &RunSummary) -> ExpectedRun {
    ExpectedRun { run_id: run.run_id, contract_digest: Some(run.contract_digest) }
}

/// A run with its outcome.
#[must_use]
pub fn run_row(installation: &Installation, run: RunSummary) -> RunRow {
    let removed = installation.home.removed_bundle(run.run_id);
    RunRow {
        outcome: outcome_of(installation, &run),
        bundle_removed_at: removed.map(|removed| removed.removed_at),
        run,
    }
}

/// The outcome of a run that landed. A bundle that cannot be read has none here: `herma verify` reports it.
fn outcome_of(installation: &Installation, run: &RunSummary) -> Option<OutcomeRow> {
    if !run.stage.needs_outcome() || run.status != Some(Status::Pass) {
        return None;
    }
    let report = read_report(&installation.home.run(run.run_id).bundle()).ok()?;
    if expected_run(run).mismatched_report(&report).is_some() {
        return None;
    }
    outcome_row(installation, &report).ok().flatten()
}
