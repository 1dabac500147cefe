//! The operator's word on what landed: accepted, or rejected and taken back. Without it a run proves nothing.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use herma_evidence::{layout, outcome, report, signed};
use herma_git::{GitError, Landing, SourceRepo, Unlanded};
use herma_model::outcome::{Outcome, OutcomeSchema, OutcomeWord};
use herma_model::report::OutcomeState;
use herma_model::signed::Signed;
use herma_model::{Digest, Report, RunId, Timestamp};
use serde::{Deserialize, Serialize};

use crate::approvers::Approver;
use crate::bundle_check::verify_bundle;
use crate::facts::Facts;
use crate::home::{Home, write_durably};
use crate::installation::Installation;

/// What is needed to take back what a run landed. It holds the target's path and never leaves the home.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Waiting {
    run_id: RunId,
    landing: Landing,
    target_dir: PathBuf,
}

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

/// The outcome could not be recorded.
#[derive(Debug, thiserror::Error)]
pub enum OutcomeError {
    /// The run asks for none.
    #[error("run {0} asks for no outcome: nothing of it landed in a target")]
    NotRequired(RunId),
    /// There is one already.
    #[error("run {0} was already {1}; an outcome is final")]
    Final(RunId, &'static str),
    /// There is one that does not count.
    #[error("run {0} has an outcome that does not count: {1}; nothing was done")]
    Void(RunId, String),
    /// It comes too late to be accepted.
    #[error(
        "missing_outcome: run {0} had to be accepted until {1}; it proves nothing and can only be rejected"
    )]
    TooLate(RunId, Timestamp),
    /// The ref is not what landed any more.
    #[error("`{reference}` points to {now}: somebody moved it, so nothing was deleted")]
    Moved {
        /// The ref.
        reference: String,
        /// Where it points to.
        now: String,
    },
    /// Somebody works on the branch.
    #[error(
        "`{0}` is checked out in the target, so nothing was deleted: switch to another branch there, then reject again"
    )]
    CheckedOut(String),
    /// The evidence does not hold, so there is nothing to accept.
    #[error("the bundle of run {0} does not hold, so it cannot be accepted: {1}")]
    Broken(RunId, String),
    /// The bundle cannot be read.
    #[error("the bundle of run {0} cannot be read: {1}")]
    Bundle(RunId, String),
    /// What is needed to take the result back is not there.
    #[error("what run {0} landed cannot be taken back: {1}")]
    Unknown(RunId, String),
    /// git could not do it.
    #[error(transparent)]
    Git(#[from] GitError),
    /// A file could not be written.
    #[error("the outcome could not be written: {0}")]
    Write(#[from] io::Error),
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
    match fs::read(&file) {
        Ok(bytes) => Ok(match given(installation, report, &bytes) {
            Ok(given) => OutcomeNow::Given(Box::new(given)),
            Err(why) => OutcomeNow::Void { claims: serde_json::from_slice(&bytes).ok(), why },
        }),
        Err(e) if e.kind() != io::ErrorKind::NotFound => {
            Err(OutcomeError::Bundle(report.run_id, format!("{}: {e}", layout::OUTCOME)))
        }
        Err(_) if installation.clock.now() > due => Ok(OutcomeNow::Missing(due)),
        Err(_) => Ok(OutcomeNow::Pending(due)),
    }
}

/// The outcome in these bytes, if it counts, or why it does not: the same rules as those of `herma verify`, but that the
/// name of an approver who is not trusted any more can be said.
fn given(installation: &Installation, report: &Report, bytes: &[u8]) -> Result<Signed<Outcome>, String> {
    let given = outcome::parse(bytes)?;
    let file = installation.home.run(report.run_id).bundle().join(layout::ATTESTATION);
    let attestation = fs::read(file).ok().map(|bytes| Digest::of(&bytes));
    outcome::is_about(&given.record, report, attestation)?;
    installation.approvers().check(&given, &given.record.operator)?;
    Ok(given)
}

/// The operator takes the result. The branch stays; merging it is the operator's own work.
pub fn accept(
    installation: &Installation,
    run_id: RunId,
    reason: &str,
    operator: &Approver,
) -> Result<Signed<Outcome>, OutcomeError> {
    let report = read_report(installation, run_id)?;
    match outcome_of(installation, &report)? {
        OutcomeNow::Pending(_) => {}
        OutcomeNow::Missing(due) => return Err(OutcomeError::TooLate(run_id, due)),
        other => return Err(not_open(run_id, &other)),
    }
    let checks = verify_bundle(&installation.home.run(run_id).bundle(), &installation.trust(), None, None);
    if let Some(failed) = checks.failed().next() {
        return Err(OutcomeError::Broken(run_id, format!("{}: {}", failed.name.as_str(), failed.detail)));
    }
    let outcome = write(installation, run_id, OutcomeWord::Accepted, reason, operator)?;
    forget(&installation.home, run_id)?;
    Ok(outcome)
}

/// The operator does not take the result: the branch is deleted if it is still ours.
pub fn reject(
    installation: &Installation,
    run_id: RunId,
    reason: &str,
    operator: &Approver,
) -> Result<(Signed<Outcome>, TakenBack), OutcomeError> {
    let report = read_report(installation, run_id)?;
    match outcome_of(installation, &report)? {
        OutcomeNow::Pending(_) | OutcomeNow::Missing(_) => {}
        other => return Err(not_open(run_id, &other)),
    }
    let waiting =
        recall(&installation.home, run_id).map_err(|e| OutcomeError::Unknown(run_id, e.to_string()))?;
    let name = report.landing.as_ref().map_or("the target", |landing| landing.reference.as_str());
    let target = SourceRepo::open(&installation.git, &waiting.target_dir, name, None)?;
    let taken = match target.unland(&waiting.landing)? {
        Unlanded::NoTrace => TakenBack::Entirely,
        Unlanded::ObjectsKept => TakenBack::ObjectsInUse,
        Unlanded::RefMoved(now) => {
            return Err(OutcomeError::Moved { reference: waiting.landing.reference, now });
        }
        Unlanded::CheckedOut => return Err(OutcomeError::CheckedOut(waiting.landing.reference)),
    };
    let outcome = write(installation, run_id, OutcomeWord::Rejected, reason, operator)?;
    forget(&installation.home, run_id)?;
    Ok((outcome, taken))
}

fn not_open(run_id: RunId, now: &OutcomeNow) -> OutcomeError {
    match now {
        OutcomeNow::Given(given) => OutcomeError::Final(
            run_id,
            match given.record.outcome {
                OutcomeWord::Accepted => "accepted",
                OutcomeWord::Rejected => "rejected",
            },
        ),
        OutcomeNow::Void { why, .. } => OutcomeError::Void(run_id, why.clone()),
        _ => OutcomeError::NotRequired(run_id),
    }
}

fn read_report(installation: &Installation, run_id: RunId) -> Result<Report, OutcomeError> {
    let file = installation.home.run(run_id).bundle().join(layout::REPORT);
    let bytes = fs::read(file).map_err(|e| OutcomeError::Bundle(run_id, e.to_string()))?;
    report::parse(&bytes).map_err(|e| OutcomeError::Bundle(run_id, e))
}

fn write(
    installation: &Installation,
    run_id: RunId,
    outcome: OutcomeWord,
    reason: &str,
    operator: &Approver,
) -> Result<Signed<Outcome>, OutcomeError> {
    let bundle = installation.home.run(run_id).bundle();
    let attestation = fs::read(bundle.join(layout::ATTESTATION))
        .map_err(|e| OutcomeError::Bundle(run_id, format!("{}: {e}", layout::ATTESTATION)))?;
    let outcome = Outcome {
        schema: OutcomeSchema::V1,
        run_id,
        attestation: Digest::of(&attestation),
        outcome,
        reason: reason.to_owned(),
        operator: operator.name().clone(),
        decided_at: installation.clock.now(),
    };
    let signed = signed::sign(outcome, operator).map_err(io::Error::from)?;
    let mut bytes = serde_json::to_vec_pretty(&signed).map_err(io::Error::from)?;
    bytes.push(b'\n');
    write_durably(&bundle.join(layout::OUTCOME), &bytes)?;
    Ok(signed)
}

/// Remembers how to take back what a run landed, until its operator has spoken.
pub(crate) fn remember(home: &Home, report: &Report, facts: &Facts) -> io::Result<()> {
    let (Some(landing), Some(target_dir)) = (&facts.landing, &facts.target_dir) else { return Ok(()) };
    if report.outcome != OutcomeState::Pending {
        return Ok(());
    }
    let waiting = Waiting { run_id: report.run_id, landing: landing.clone(), target_dir: target_dir.clone() };
    let file = file(home, report.run_id);
    fs::create_dir_all(file.parent().unwrap_or(Path::new("/")))?;
    write_durably(&file, &serde_json::to_vec_pretty(&waiting)?)
}

fn recall(home: &Home, run_id: RunId) -> io::Result<Waiting> {
    let waiting: Waiting = serde_json::from_slice(&fs::read(file(home, run_id))?)?;
    if waiting.run_id == run_id { Ok(waiting) } else { Err(io::Error::other("it is about another run")) }
}

fn forget(home: &Home, run_id: RunId) -> io::Result<()> {
    match fs::remove_file(file(home, run_id)) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(e),
        _ => Ok(()),
    }
}

fn file(home: &Home, run_id: RunId) -> PathBuf {
    home.root().join("landed").join(format!("{run_id}.json"))
}
