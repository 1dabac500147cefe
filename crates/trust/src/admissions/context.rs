//! The facts that decide whether an admission counts now.

use std::path::PathBuf;

use herma_core::Timestamp;
use herma_core::admission::AdmissionId;
use herma_core::store::{RunQuery, RunSummary};
use herma_store::BlockingStore;

use crate::approvers::Approvers;

/// Directories of every system whose contents do not last.
pub const SYSTEM_TEMP_DIRS: [&str; 4] = ["/tmp", "/var/tmp", "/dev/shm", "/run"];

/// How many runs are counted at once.
const PAGE: u32 = 1_000;

/// Counts the runs of an admitted subject since a time; none where that is unknown.
pub type RunsSince<'a> = dyn Fn(&AdmissionId, Timestamp) -> Option<u64> + 'a;

/// The facts that decide whether an admission counts now; all of them are passed in as values.
pub struct AdmissionContext<'a> {
    /// The approvers whose signatures count.
    pub approvers: Approvers,
    /// The time.
    pub now: Timestamp,
    /// herma's version.
    pub herma_version: &'a str,
    /// Temporary directories.
    pub temp_dirs: Vec<PathBuf>,
    /// herma's home: a program in it lasts as long as the admission itself, also when the home is temporary.
    pub home: PathBuf,
    /// Counts the runs that were started since a time, including the current one.
    pub runs_since: Box<RunsSince<'a>>,
}

/// Counts the runs of an engine since a time. For models and targets all runs count, because the store does not know
/// which run used them.
#[must_use]
pub fn count_runs(store: &BlockingStore, id: &AdmissionId, since: Timestamp) -> Option<u64> {
    let mut counted = 0;
    let mut before = None;
    loop {
        let query = RunQuery { limit: PAGE, before, status: None };
        let page = store.call(|store| store.runs(&query)).ok()?;
        let counts = |run: &&RunSummary| {
            run.started_at >= since
                && match id {
                    AdmissionId::Engine(engine) => run.engine == *engine,
                    AdmissionId::Model(_) | AdmissionId::Target(_) => true,
                }
        };
        counted += page.iter().filter(counts).count() as u64;
        // The order is that of recording, which a clock change can contradict: every page is read.
        match page.last() {
            Some(last) => before = Some(last.run_id),
            None => return Some(counted),
        }
    }
}
