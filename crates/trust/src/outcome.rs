//! The operator's outcome of a landed result: accepted, or rejected and removed from the target. Without one in time a
//! run proves nothing.

mod error;
mod waiting;

use std::io::{self, Write as _};
use std::path::Path;

use herma_core::outcome::{Outcome, OutcomeSchema, OutcomeWord};
use herma_core::report::OutcomeState;
use herma_core::signed::Signed;
use herma_core::trust::TrustEntry;
use herma_core::{Clock, Digest, Report, RunId, Timestamp};
use herma_evidence::verify::CheckName;
use herma_evidence::{layout, outcome, report, signed};
use herma_files::{MAX_RECORD_BYTES, read_regular};
use herma_git::{Git, LandState, SourceRepo, Unlanded};
use herma_home::{sync_dir, write_durably};

pub use self::error::OutcomeError;
pub use self::waiting::remember_landing;
use self::waiting::{PendingLanding, forget, lock_run, recall};
use crate::approvers::Approver;
use crate::evidence::RunEvidence;

/// The outcome of a run, as far as there is one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OutcomeStatus {
    /// The run needs none.
    NotRequired,
    /// It can be given until this time.
    Pending(Timestamp),
    /// It was given by an approver who is trusted today, on this run's evidence and in time.
    Given(Box<Signed<Outcome>>),
    /// The outcome file does not count.
    Void {
        /// Its content, where it can be read. Nothing may depend on it.
        claims: Option<Box<Signed<Outcome>>>,
        /// Why it does not count.
        why: String,
    },
    /// It was not given in time: the run proves nothing.
    Missing(Timestamp),
}

/// Whether the objects of a rejected result were removed from the target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TakenBack {
    /// No trace is left.
    Entirely,
    /// The branch is gone; its objects stay, because something else in the target uses some of them.
    ObjectsInUse,
}

/// Reads and records the outcomes of an installation's runs.
pub struct Outcomes<'a> {
    evidence: RunEvidence<'a>,
    git: &'a Git,
    clock: &'a dyn Clock,
}

/// The state of the outcome file before the outcome is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OutcomeFile {
    /// It does not exist.
    Absent,
    /// It does not count, and is replaced.
    Void,
}

impl<'a> Outcomes<'a> {
    /// The outcomes of the runs whose evidence this is.
    #[must_use]
    pub fn new(evidence: RunEvidence<'a>, git: &'a Git, clock: &'a dyn Clock) -> Self {
        Self { evidence, git, clock }
    }

    /// The outcome of a run. A `Given` one was checked.
    pub fn status(&self, report: &Report) -> Result<OutcomeStatus, OutcomeError> {
        let Some(due) = report.outcome_due.filter(|_| report.outcome == OutcomeState::Pending) else {
            return Ok(OutcomeStatus::NotRequired);
        };
        let file = self.evidence.home.run(report.run_id).bundle().join(layout::OUTCOME);
        match read_regular(&file, MAX_RECORD_BYTES) {
            Ok(bytes) => Ok(match self.given(report, &bytes) {
                Ok(given) => OutcomeStatus::Given(Box::new(given)),
                Err(why) => OutcomeStatus::Void { claims: serde_json::from_slice(&bytes).ok(), why },
            }),
            Err(e) if e.kind() != io::ErrorKind::NotFound => {
                Err(OutcomeError::Bundle(report.run_id, format!("{}: {e}", layout::OUTCOME)))
            }
            Err(_) => Ok(match self.recorded(report.run_id) {
                Some(word) => {
                    let (word, file) = (said(word), layout::OUTCOME);
                    let why = format!("the trust chain says that it was {word}, and {file} is gone");
                    OutcomeStatus::Void { claims: None, why }
                }
                None if self.clock.now() > due => OutcomeStatus::Missing(due),
                None => OutcomeStatus::Pending(due),
            }),
        }
    }

    /// The outcome in these bytes, if it counts, or why it does not: the same rules as those of `herma verify`, but that the
    /// error can name an approver who is not trusted any more.
    fn given(&self, report: &Report, bytes: &[u8]) -> Result<Signed<Outcome>, String> {
        let given = outcome::parse(bytes).map_err(|bad| bad.to_string())?;
        let file = self.evidence.home.run(report.run_id).bundle().join(layout::ATTESTATION);
        let attestation = read_regular(&file, MAX_RECORD_BYTES).ok().map(|bytes| Digest::of(&bytes));
        outcome::is_about(&given.record, report, attestation).map_err(|other| other.to_string())?;
        let approvers = &self.evidence.approvers;
        approvers.check(&given, &given.record.operator).map_err(|e| e.to_string())?;
        let chain = approvers.chain_of(given.record.trust_head).map_err(|e| e.to_string())?;
        let digest = signed::digest(&given.record).map_err(|e| e.to_string())?;
        match chain.outcome(report.run_id) {
            Some((_, current)) if current == digest => Ok(given),
            // An earlier version gave it.
            None if given.record.trust_head.is_none() => Ok(given),
            _ => Err("it is not the outcome that the trust chain names".to_owned()),
        }
    }

    /// The outcome in the trust chain.
    fn recorded(&self, run_id: RunId) -> Option<OutcomeWord> {
        self.evidence.approvers.trust_log().read().ok()?.outcome(run_id).map(|(word, _)| word)
    }

    /// Whether this outcome was cut off after the trust chain had it and before its file was written: then it can be given
    /// once more, and no other.
    fn resumes(&self, report: &Report, word: OutcomeWord) -> Result<bool, OutcomeError> {
        let file = self.evidence.home.run(report.run_id).bundle().join(layout::OUTCOME);
        let missing = std::fs::symlink_metadata(file).is_err_and(|e| e.kind() == io::ErrorKind::NotFound);
        match self.recorded(report.run_id).filter(|_| missing) {
            None => Ok(false),
            Some(recorded) if recorded == word => Ok(true),
            Some(other) => Err(OutcomeError::Final(report.run_id, said(other))),
        }
    }

    /// The operator takes the result. The branch stays; merging it is the operator's own work.
    pub fn accept(
        &self,
        run_id: RunId,
        reason: &str,
        operator: &Approver,
    ) -> Result<Signed<Outcome>, OutcomeError> {
        let _lock =
            lock_run(self.evidence.home, run_id).map_err(|e| OutcomeError::Bundle(run_id, e.to_string()))?;
        let report = self.read_report(run_id)?;
        match self.status(&report)? {
            OutcomeStatus::Pending(_) => {}
            OutcomeStatus::Void { .. } if self.resumes(&report, OutcomeWord::Accepted)? => {}
            OutcomeStatus::Missing(due) => return Err(OutcomeError::TooLate(run_id, due)),
            other => return Err(not_open(run_id, &other)),
        }
        self.must_hold(run_id)?;
        let waiting = recall(self.evidence.home, run_id)
            .map_err(|e| OutcomeError::Gone(run_id, format!("herma does not remember it ({e})")))?;
        let target = self.target_of(&waiting, &report)?;
        let reference = &waiting.landing.reference;
        match target.landed(&waiting.landing)? {
            LandState::Ours => {}
            LandState::Theirs(now) => return Err(OutcomeError::Moved { reference: reference.clone(), now }),
            LandState::Absent => {
                return Err(OutcomeError::Gone(run_id, format!("the target has no `{reference}`")));
            }
        }
        let outcome = self.write(run_id, OutcomeWord::Accepted, reason, operator, OutcomeFile::Absent)?;
        forget(self.evidence.home, run_id)?;
        Ok(outcome)
    }

    /// The operator does not take the result: the branch is deleted if it is still ours. An outcome that does not count is
    /// no obstacle, because this only takes away; it is replaced.
    pub fn reject(
        &self,
        run_id: RunId,
        reason: &str,
        operator: &Approver,
    ) -> Result<(Signed<Outcome>, TakenBack), OutcomeError> {
        let _lock =
            lock_run(self.evidence.home, run_id).map_err(|e| OutcomeError::Bundle(run_id, e.to_string()))?;
        let report = self.read_report(run_id)?;
        let recalled = recall(self.evidence.home, run_id);
        let place = match self.status(&report)? {
            OutcomeStatus::Pending(_) | OutcomeStatus::Missing(_) => OutcomeFile::Absent,
            OutcomeStatus::Void { .. } if self.resumes(&report, OutcomeWord::Rejected)? => {
                OutcomeFile::Absent
            }
            OutcomeStatus::Void { .. } if recalled.is_ok() => OutcomeFile::Void,
            other => return Err(not_open(run_id, &other)),
        };
        let waiting = recalled.map_err(|e| OutcomeError::Unknown(run_id, e.to_string()))?;
        self.must_hold(run_id)?;
        let target = self.target_of(&waiting, &report)?;
        let taken = match target.unland(&waiting.landing)? {
            Unlanded::NoTrace => TakenBack::Entirely,
            Unlanded::ObjectsKept => TakenBack::ObjectsInUse,
            Unlanded::RefMoved(now) => {
                return Err(OutcomeError::Moved { reference: waiting.landing.reference, now });
            }
            Unlanded::CheckedOut => return Err(OutcomeError::CheckedOut(waiting.landing.reference)),
        };
        let outcome = self.write(run_id, OutcomeWord::Rejected, reason, operator, place)?;
        forget(self.evidence.home, run_id)?;
        Ok((outcome, taken))
    }

    /// The evidence holds. An outcome that does not count is a separate matter, which the caller judges.
    fn must_hold(&self, run_id: RunId) -> Result<(), OutcomeError> {
        let checks = self.evidence.verify(run_id);
        match checks.failed().find(|failed| failed.name != CheckName::Outcome) {
            None => Ok(()),
            Some(failed) => {
                Err(OutcomeError::Broken(run_id, format!("{}: {}", failed.name.as_str(), failed.detail)))
            }
        }
    }

    /// The target, if the kept landing matches the evidence.
    fn target_of(&self, waiting: &PendingLanding, report: &Report) -> Result<SourceRepo, OutcomeError> {
        waiting.is_of(report).map_err(|what| OutcomeError::Mismatch(report.run_id, what))?;
        let name = format!("the target of run {}", report.run_id);
        Ok(SourceRepo::open(self.git, &waiting.target_dir, &name, None)?)
    }

    fn read_report(&self, run_id: RunId) -> Result<Report, OutcomeError> {
        let file = self.evidence.home.run(run_id).bundle().join(layout::REPORT);
        let bytes = read_regular(&file, report::MAX_BYTES)
            .map_err(|e| OutcomeError::Bundle(run_id, e.to_string()))?;
        let report = report::parse(&bytes).map_err(|e| OutcomeError::Bundle(run_id, e.to_string()))?;
        if report.run_id == run_id {
            Ok(report)
        } else {
            Err(OutcomeError::Bundle(run_id, format!("it is that of run {}", report.run_id)))
        }
    }

    fn write(
        &self,
        run_id: RunId,
        outcome: OutcomeWord,
        reason: &str,
        operator: &Approver,
        place: OutcomeFile,
    ) -> Result<Signed<Outcome>, OutcomeError> {
        let bundle = self.evidence.home.run(run_id).bundle();
        let attestation = read_regular(&bundle.join(layout::ATTESTATION), MAX_RECORD_BYTES)
            .map_err(|e| OutcomeError::Bundle(run_id, format!("{}: {e}", layout::ATTESTATION)))?;
        let (mut appending, now) = (self.evidence.approvers.trust_log().lock()?, self.clock.now());
        let outcome = Outcome {
            schema: OutcomeSchema::V1,
            run_id,
            attestation: Digest::of(&attestation),
            outcome,
            reason: reason.to_owned(),
            operator: operator.name().clone(),
            decided_at: now,
            trust_head: Some(appending.head()),
        };
        let signed = signed::sign(outcome, operator).map_err(io::Error::from)?;
        let entry = TrustEntry::OutcomeGiven {
            run: run_id,
            outcome: signed.record.outcome,
            record: signed::digest(&signed.record).map_err(io::Error::from)?,
        };
        appending.append(entry, operator, now)?;
        let mut bytes = serde_json::to_vec_pretty(&signed).map_err(io::Error::from)?;
        bytes.push(b'\n');
        let file = bundle.join(layout::OUTCOME);
        match place {
            OutcomeFile::Absent => write_new(&bundle, &file, &bytes)?,
            OutcomeFile::Void => write_durably(&file, &bytes)?,
        }
        Ok(signed)
    }
}

fn said(word: OutcomeWord) -> &'static str {
    match word {
        OutcomeWord::Accepted => "accepted",
        OutcomeWord::Rejected => "rejected",
    }
}

fn not_open(run_id: RunId, now: &OutcomeStatus) -> OutcomeError {
    match now {
        OutcomeStatus::Given(given) => OutcomeError::Final(run_id, said(given.record.outcome)),
        OutcomeStatus::Void { why, .. } => OutcomeError::Void(run_id, why.clone()),
        _ => OutcomeError::NotRequired(run_id),
    }
}

/// Writes a file that is either there in full or not at all, and never in the place of another.
fn write_new(dir: &Path, file: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut temp = tempfile::NamedTempFile::new_in(dir)?;
    temp.write_all(bytes)?;
    temp.as_file().sync_all()?;
    temp.persist_noclobber(file).map_err(|e| e.error)?;
    sync_dir(dir)
}
