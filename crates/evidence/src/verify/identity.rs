//! The check that a bundle belongs to the run that was named, and not to another run of the same installation.

use herma_core::{Digest, Report, RunId};

use super::check::Good;
use super::pass::BundleContents;
use crate::envelope::Predicate;

/// The run whose bundle is expected in a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExpectedRun {
    /// The run.
    pub run_id: RunId,
    /// The digest of its contract by the store, where the store has the run.
    pub contract_digest: Option<Digest>,
}

impl ExpectedRun {
    /// Why a statement about a run is not about the expected one.
    pub(crate) fn mismatch(&self, signed: &Predicate) -> Option<String> {
        self.differs(signed.run_id, signed.contract_digest)
    }

    /// Why a report is not that of the expected run.
    #[must_use]
    pub fn mismatched_report(&self, report: &Report) -> Option<String> {
        self.differs(report.run_id, report.contract_digest)
    }

    fn differs(&self, run_id: RunId, contract_digest: Digest) -> Option<String> {
        if run_id != self.run_id {
            return Some(format!("this is the bundle of run {run_id}, expected that of run {}", self.run_id));
        }
        let expected = self.contract_digest.filter(|expected| *expected != contract_digest)?;
        Some(format!("the contract is {contract_digest}, the store has {expected} for run {run_id}"))
    }
}

/// Attestation and report are about the run that was named.
pub(super) fn identity(seen: &BundleContents, expected: Option<&ExpectedRun>) -> Result<Good, String> {
    let Some(expected) = expected else {
        return Ok(Good::NotApplicable("a directory was given, and no run named".to_owned()));
    };
    let (_, statement) = seen.envelope()?;
    let mismatch =
        expected.mismatch(&statement.predicate).or_else(|| expected.mismatched_report(seen.report().ok()?));
    match mismatch {
        Some(mismatch) => Err(mismatch),
        None => Ok(Good::Passed(format!("run {}", expected.run_id))),
    }
}
