//! The operator's word on what landed: accepted, or rejected and taken back. Without it a run proves nothing.

mod error;
mod waiting;

use std::io::{self, Write as _};
use std::path::Path;

use herma_core::outcome::{Outcome, OutcomeSchema, OutcomeWord};
use herma_core::report::OutcomeState;
use herma_core::signed::Signed;
use herma_core::trust::TrustEntry;
use herma_core::{Digest, Report, RunId, Timestamp};
use herma_evidence::verify::CheckName;
use herma_evidence::{layout, outcome, report, signed};
use herma_git::{LandState, SourceRepo, Unlanded};
use herma_home::{sync_dir, write_durably};

pub use self::error::OutcomeError;
pub(crate) use self::waiting::remember;
use self::waiting::{Waiting, forget, hold, recall};
use crate::approvers::Approver;
use crate::bundle_check::verify_run;
use crate::file_reading::{MAX_RECORD_BYTES, read_regular};
use crate::installation::Installation;

/// Where a run stands with its operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OutcomeNow {
    /// None is asked for.
    NotRequired,
    /// It can be given until then.
    Pending(Timestamp),
    /// It was given: an approver who is trusted today said it, on this run's evidence and in time.
    Given(Box<Signed<Outcome>>),
    /// Something lies where the outcome should be and does not count as one.
    Void {
        /// What it says, where it can be read. Nobody may lean on it.
        claims: Option<Box<Signed<Outcome>>>,
        /// Why it does not count.
        why: String,
    },
    /// It was not given in time: the run proves nothing.
    Missing(Timestamp),
}

/// What became of the objects of a rejected result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TakenBack {
    /// No trace is left.
    Entirely,
    /// The branch is gone; its objects stay, because something else in the target uses some of them.
    ObjectsInUse,
}

/// Where a run stands with its operator. What is `Given` was checked.
pub fn outcome_of(installation: &Installation, report: &Report) -> Result<OutcomeNow, OutcomeError> {
    let Some(due) = report.outcome_due.filter(|_| report.outcome == OutcomeState::Pending) else {
        return Ok(OutcomeNow::NotRequired);
    };
    let file = installation.home.run(report.run_id).bundle().join(layout::OUTCOME);
    match read_regular(&file, MAX_RECORD_BYTES) {
        Ok(bytes) => Ok(match given(installation, report, &bytes) {
            Ok(given) => OutcomeNow::Given(Box::new(given)),
            Err(why) => OutcomeNow::Void { claims: serde_json::from_slice(&bytes).ok(), why },
        }),
        Err(e) if e.kind() != io::ErrorKind::NotFound => {
            Err(OutcomeError::Bundle(report.run_id, format!("{}: {e}", layout::OUTCOME)))
        }
        Err(_) => Ok(match recorded(installation, report.run_id) {
            Some(word) => {
                let (word, file) = (said(word), layout::OUTCOME);
                let why = format!("the trust chain says that it was {word}, and {file} is gone");
                OutcomeNow::Void { claims: None, why }
            }
            None if installation.clock.now() > due => OutcomeNow::Missing(due),
            None => OutcomeNow::Pending(due),
        }),
    }
}

/// The outcome in these bytes, if it counts, or why it does not: the same rules as those of `herma verify`, but that the
/// name of an approver who is not trusted any more can be said.
fn given(installation: &Installation, report: &Report, bytes: &[u8]) -> Result<Signed<Outcome>, String> {
    let given = outcome::parse(bytes)?;
    let file = installation.home.run(report.run_id).bundle().join(layout::ATTESTATION);
    let attestation = read_regular(&file, MAX_RECORD_BYTES).ok().map(|bytes| Digest::of(&bytes));
    outcome::is_about(&given.record, report, attestation)?;
    let approvers = installation.approvers();
    approvers.check(&given, &given.record.operator)?;
    let chain = approvers.chain_of(given.record.trust_head)?;
    let digest = signed::digest(&given.record).map_err(|e| e.to_string())?;
    match chain.outcome(report.run_id) {
        Some((_, current)) if current == digest => Ok(given),
        // An earlier version gave it.
        None if given.record.trust_head.is_none() => Ok(given),
        _ => Err("it is not the outcome that the trust chain names".to_owned()),
    }
}

/// The outcome that the trust chain says was given.
fn recorded(installation: &Installation, run_id: RunId) -> Option<OutcomeWord> {
    installation.trust_log.read().ok()?.outcome(run_id).map(|(word, _)| word)
}

fn said(word: OutcomeWord) -> &'static str {
    match word {
        OutcomeWord::Accepted => "accepted",
        OutcomeWord::Rejected => "rejected",
    }
}

/// Whether this outcome was cut off after the trust chain had it and before its file was written: then it can be given
/// once more, and no other.
fn resumes(installation: &Installation, report: &Report, word: OutcomeWord) -> Result<bool, OutcomeError> {
    let file = installation.home.run(report.run_id).bundle().join(layout::OUTCOME);
    let missing = std::fs::symlink_metadata(file).is_err_and(|e| e.kind() == io::ErrorKind::NotFound);
    match recorded(installation, report.run_id).filter(|_| missing) {
        None => Ok(false),
        Some(recorded) if recorded == word => Ok(true),
        Some(other) => Err(OutcomeError::Final(report.run_id, said(other))),
    }
}

/// The operator takes the result. The branch stays; merging it is the operator's own work.
pub fn accept(
    installation: &Installation,
    run_id: RunId,
    reason: &str,
    operator: &Approver,
) -> Result<Signed<Outcome>, OutcomeError> {
    let _held = hold(&installation.home, run_id).map_err(|e| OutcomeError::Bundle(run_id, e.to_string()))?;
    let report = read_report(installation, run_id)?;
    match outcome_of(installation, &report)? {
        OutcomeNow::Pending(_) => {}
        OutcomeNow::Void { .. } if resumes(installation, &report, OutcomeWord::Accepted)? => {}
        OutcomeNow::Missing(due) => return Err(OutcomeError::TooLate(run_id, due)),
        other => return Err(not_open(run_id, &other)),
    }
    must_hold(installation, run_id)?;
    let waiting = recall(&installation.home, run_id)
        .map_err(|e| OutcomeError::Gone(run_id, format!("herma does not remember it ({e})")))?;
    let target = target_of(installation, &waiting, &report)?;
    let reference = &waiting.landing.reference;
    match target.landed(&waiting.landing)? {
        LandState::Ours => {}
        LandState::Theirs(now) => return Err(OutcomeError::Moved { reference: reference.clone(), now }),
        LandState::Absent => {
            return Err(OutcomeError::Gone(run_id, format!("the target has no `{reference}`")));
        }
    }
    let outcome = write(installation, run_id, OutcomeWord::Accepted, reason, operator, Place::Free)?;
    forget(&installation.home, run_id)?;
    Ok(outcome)
}

/// The operator does not take the result: the branch is deleted if it is still ours. An outcome that does not count is
/// no obstacle, because this only takes away; it is replaced.
pub fn reject(
    installation: &Installation,
    run_id: RunId,
    reason: &str,
    operator: &Approver,
) -> Result<(Signed<Outcome>, TakenBack), OutcomeError> {
    let _held = hold(&installation.home, run_id).map_err(|e| OutcomeError::Bundle(run_id, e.to_string()))?;
    let report = read_report(installation, run_id)?;
    let recalled = recall(&installation.home, run_id);
    let place = match outcome_of(installation, &report)? {
        OutcomeNow::Pending(_) | OutcomeNow::Missing(_) => Place::Free,
        OutcomeNow::Void { .. } if resumes(installation, &report, OutcomeWord::Rejected)? => Place::Free,
        OutcomeNow::Void { .. } if recalled.is_ok() => Place::Void,
        other => return Err(not_open(run_id, &other)),
    };
    let waiting = recalled.map_err(|e| OutcomeError::Unknown(run_id, e.to_string()))?;
    must_hold(installation, run_id)?;
    let target = target_of(installation, &waiting, &report)?;
    let taken = match target.unland(&waiting.landing)? {
        Unlanded::NoTrace => TakenBack::Entirely,
        Unlanded::ObjectsKept => TakenBack::ObjectsInUse,
        Unlanded::RefMoved(now) => {
            return Err(OutcomeError::Moved { reference: waiting.landing.reference, now });
        }
        Unlanded::CheckedOut => return Err(OutcomeError::CheckedOut(waiting.landing.reference)),
    };
    let outcome = write(installation, run_id, OutcomeWord::Rejected, reason, operator, place)?;
    forget(&installation.home, run_id)?;
    Ok((outcome, taken))
}

/// The evidence holds. An outcome that does not count is apart from it, and judged by who asks.
fn must_hold(installation: &Installation, run_id: RunId) -> Result<(), OutcomeError> {
    let (bundle, expected) = (installation.home.run(run_id).bundle(), installation.expected_run(run_id));
    let checks = verify_run(&bundle, &expected, &installation.trust(), None, None);
    match checks.failed().find(|failed| failed.name != CheckName::Outcome) {
        None => Ok(()),
        Some(failed) => {
            Err(OutcomeError::Broken(run_id, format!("{}: {}", failed.name.as_str(), failed.detail)))
        }
    }
}

/// The target, if what was remembered is what the evidence says.
fn target_of(
    installation: &Installation,
    waiting: &Waiting,
    report: &Report,
) -> Result<SourceRepo, OutcomeError> {
    waiting.is_of(report).map_err(|what| OutcomeError::Mismatch(report.run_id, what))?;
    let name = format!("the target of run {}", report.run_id);
    Ok(SourceRepo::open(&installation.git, &waiting.target_dir, &name, None)?)
}

fn not_open(run_id: RunId, now: &OutcomeNow) -> OutcomeError {
    match now {
        OutcomeNow::Given(given) => OutcomeError::Final(run_id, said(given.record.outcome)),
        OutcomeNow::Void { why, .. } => OutcomeError::Void(run_id, why.clone()),
        _ => OutcomeError::NotRequired(run_id),
    }
}

fn read_report(installation: &Installation, run_id: RunId) -> Result<Report, OutcomeError> {
    let file = installation.home.run(run_id).bundle().join(layout::REPORT);
    let bytes =
        read_regular(&file, report::MAX_BYTES).map_err(|e| OutcomeError::Bundle(run_id, e.to_string()))?;
    let report = report::parse(&bytes).map_err(|e| OutcomeError::Bundle(run_id, e))?;
    if report.run_id == run_id {
        Ok(report)
    } else {
        Err(OutcomeError::Bundle(run_id, format!("it is that of run {}", report.run_id)))
    }
}

/// What lies where the outcome will be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// Nothing.
    Free,
    /// Something that does not count.
    Void,
}

fn write(
    installation: &Installation,
    run_id: RunId,
    outcome: OutcomeWord,
    reason: &str,
    operator: &Approver,
    place: Place,
) -> Result<Signed<Outcome>, OutcomeError> {
    let bundle = installation.home.run(run_id).bundle();
    let attestation = read_regular(&bundle.join(layout::ATTESTATION), MAX_RECORD_BYTES)
        .map_err(|e| OutcomeError::Bundle(run_id, format!("{}: {e}", layout::ATTESTATION)))?;
    let (mut appending, now) = (installation.trust_log.lock()?, installation.clock.now());
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
        Place::Free => write_new(&bundle, &file, &bytes)?,
        Place::Void => write_durably(&file, &bytes)?,
    }
    Ok(signed)
}

/// Writes a file that is either there in full or not at all, and never in the place of another.
fn write_new(dir: &Path, file: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut temp = tempfile::NamedTempFile::new_in(dir)?;
    temp.write_all(bytes)?;
    temp.as_file().sync_all()?;
    temp.persist_noclobber(file).map_err(|e| e.error)?;
    sync_dir(dir)
}
