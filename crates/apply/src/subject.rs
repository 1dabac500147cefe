//! The run to apply and the repository to apply it to: the bundle is verified first, with the code of `herma verify`.

use std::path::{Path, PathBuf};

use herma_core::contract;
use herma_core::event::Event;
use herma_core::store::RunSummary;
use herma_core::{Contract, Digest, Report, RunId, Status};
use herma_evidence::{ExpectedRun, layout, report};
use herma_files::{MAX_RECORD_BYTES, read_regular, read_start};
use herma_harness::Installation;
use herma_trust::verify_run;

use crate::base_check;
use crate::error::ApplyError;
use crate::journal::{Record, State};
use crate::undo;

/// The most that is read of the first event.
const FIRST_EVENT_BYTES: u64 = 64 << 10;

/// A run that passed and verified, and the repository of a person that has its base checked out.
#[derive(Clone, Debug)]
pub struct Subject {
    /// Its report.
    pub report: Report,
    /// Its contract.
    pub contract: Contract,
    /// The digest of its `attestation.json`, which covers every other file of the bundle.
    pub attestation: Digest,
    /// The top directory of the repository.
    pub directory: PathBuf,
    /// The commit that is checked out there.
    pub base: String,
    pub(crate) patch: PathBuf,
}

impl Subject {
    /// Verifies the run and finds the repository around `inside`. Nothing is changed.
    pub fn find(installation: &Installation, run: &RunSummary, inside: &Path) -> Result<Self, ApplyError> {
        not_applied_yet(undo::recorded(&installation.home, run.run_id), run.run_id)?;
        let directory = installation.git().top_level(inside)?;
        let bundle = installation.home.run(run.run_id).bundle();
        let refused = |why: String| ApplyError::NotAPass { run: run.run_id, why };
        let read = |name: &str, most: u64| {
            read_regular(&bundle.join(name), most).map_err(|e| refused(format!("{name}: {e}")))
        };
        let attestation = Digest::of(&read(layout::ATTESTATION, MAX_RECORD_BYTES)?);
        let report = report::parse(&read(layout::REPORT, report::MAX_BYTES)?)
            .map_err(|bad| refused(format!("{}: {bad}", layout::REPORT)))?;
        if report.status != Status::Pass {
            return Err(refused(format!("its verdict is {}", report.status.as_str())));
        }
        let contract = Contract::parse(&read(layout::CONTRACT, contract::MAX_BYTES)?)
            .map_err(|bad| refused(format!("{}: {bad}", layout::CONTRACT)))?;
        base_check::is_of_a_repository(&report, &contract, first_event(&bundle).as_ref())?;
        let expected = ExpectedRun { run_id: run.run_id, contract_digest: Some(run.contract_digest) };
        let base = base_check::unmoved_base(installation, &report, &directory)?;
        let git = Some(installation.git());
        let checks = verify_run(&bundle, &expected, &installation.trust(), git, Some(&directory));
        if !checks.ok() {
            let failed = checks.failed().next();
            let why = failed.map(|check| format!("{}: {}", check.name.as_str(), check.detail));
            return Err(refused(why.unwrap_or_else(|| "nothing could be checked".to_owned())));
        }
        if report.changed_files.is_empty() {
            return Err(ApplyError::Empty(run.run_id));
        }
        let subject =
            Self { report, contract, attestation, directory, base, patch: bundle.join(layout::PATCH) };
        subject.may_be_changed(installation)?;
        Ok(subject)
    }

    /// Refuses a repository that is protected, and one in which a landing is under way.
    pub(crate) fn may_be_changed(&self, installation: &Installation) -> Result<(), ApplyError> {
        base_check::is_not_protected(installation, &self.contract, &self.directory)?;
        base_check::no_landing(installation, &self.directory)
    }
}

/// Refuses a run that has a record, complete or not.
pub(crate) fn not_applied_yet(recorded: Result<Record, ApplyError>, run: RunId) -> Result<(), ApplyError> {
    let record = match recorded {
        Ok(record) => record,
        Err(ApplyError::NotApplied(_)) => return Ok(()),
        Err(error) => return Err(error),
    };
    let place = record.directory;
    Err(match record.state {
        State::Applied => ApplyError::Applied { run, place },
        State::Applying | State::Undoing => ApplyError::CutOff { run, place },
    })
}

/// The first event of the bundle.
fn first_event(bundle: &Path) -> Option<Event> {
    let events = read_start(&bundle.join(layout::EVENTS), FIRST_EVENT_BYTES).ok()?;
    serde_json::from_slice(events.split(|byte| *byte == b'\n').next()?).ok()
}
