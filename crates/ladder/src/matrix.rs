//! Runs the failure matrix on the real program: each row in a throw-away home, and the cases that must pass.

mod conditions;
mod contract;
mod evidence;
mod jobs;
mod picture;
mod records;
mod row;
mod site;

use std::sync::mpsc;
use std::sync::{Mutex, PoisonError};
use std::thread;

use herma_core::cancellation::EndSignal;
use herma_core::engine::EngineName;
use herma_core::matrix::{MatrixCase, MatrixReport, MatrixRow, MatrixSchema};
use herma_core::{Blocker, RunId, VERSION};
use herma_engines::EngineError;
use herma_harness::Installation;

pub use self::records::{MatrixRecordError, MatrixRecords};

use self::jobs::{Done, Job, jobs};

/// How many rows run at the same time: more would compete for the cores, and rows with short limits would fail.
const WORKERS: usize = 2;

/// The matrix could not be run as a whole. A single row that cannot be brought about is one that does not hold.
#[derive(Debug, thiserror::Error)]
pub enum MatrixError {
    /// herma was interrupted. An incomplete run leaves no record.
    #[error("the failure matrix was not run to its end: herma was interrupted by {0}")]
    Interrupted(EndSignal),
    /// herma's own program has no digest.
    #[error("the digest of herma's program could not be computed: {0}")]
    Digest(#[from] EngineError),
    /// herma does not have the engine of the matrix.
    #[error("herma has no engine `{0}`")]
    NoEngine(EngineName),
    /// The system gave no randomness.
    #[error("the record could not be named: the system gave no randomness: {0}")]
    Random(#[from] getrandom::Error),
}

/// Observes the rows.
pub trait MatrixWatch {
    /// So many of so many are done; this one is.
    fn row(&self, done: usize, total: usize, name: &str, problems: &[String]);
}

/// Runs the rows of these blockers, or all rows and the cases that must pass. The home of the installation is only read: it
/// gives the program and the search path.
pub fn run_matrix(
    installation: &Installation,
    only: &[Blocker],
    watch: &dyn MatrixWatch,
) -> Result<MatrixReport, MatrixError> {
    let engine = EngineName::fake();
    let known = installation.engines().get(&engine).ok_or_else(|| MatrixError::NoEngine(engine.clone()))?;
    let herma_digest = known.digest()?;
    let (rows, cases) = carry_out(installation, jobs(only), watch);
    if let Some(signal) = installation.cancellation.signal() {
        return Err(MatrixError::Interrupted(signal));
    }
    let made_at = installation.now();
    let mut entropy = [0; 10];
    getrandom::fill(&mut entropy)?;
    let partial = !only.is_empty();
    let complete = partial || rows.len() == Blocker::ALL.len();
    let held = complete && rows.iter().all(|row| row.held) && cases.iter().all(|case| case.held);
    Ok(MatrixReport {
        schema: MatrixSchema::V1,
        id: RunId::new(made_at, entropy),
        herma_version: VERSION.to_owned(),
        herma_digest,
        engine,
        made_at,
        held,
        partial,
        rows,
        cases,
    })
}

/// Runs the jobs on a few threads; gives rows and cases in their order.
fn carry_out(
    installation: &Installation,
    jobs: Vec<Job>,
    watch: &dyn MatrixWatch,
) -> (Vec<MatrixRow>, Vec<MatrixCase>) {
    let total = jobs.iter().map(Job::len).sum();
    let (queue, (sender, receiver)) = (Mutex::new(jobs.into_iter()), mpsc::channel());
    let (mut rows, mut cases) = (Vec::new(), Vec::new());
    thread::scope(|scope| {
        for _ in 0..WORKERS {
            let (queue, sender) = (&queue, sender.clone());
            scope.spawn(move || {
                loop {
                    let job = queue.lock().unwrap_or_else(PoisonError::into_inner).next();
                    let Some(job) = job.filter(|_| !installation.cancellation.is_cancelled()) else { return };
                    job.carry_out(installation, &|done| drop(sender.send(done)));
                }
            });
        }
        drop(sender);
        for (at, done) in receiver.iter().enumerate() {
            let (name, problems) = done.said();
            watch.row(at + 1, total, name, problems);
            match done {
                Done::Row(row) => rows.push(row),
                Done::Case(case) => cases.push(case),
            }
        }
    });
    rows.sort_by_key(|row| Blocker::ALL.iter().position(|blocker| *blocker == row.blocker));
    cases.sort_by_key(|case| case.name);
    (rows, cases)
}
