//! What is the case when somebody asks whether something is admitted.

use std::path::PathBuf;

use herma_core::admission::AdmissionId;
use herma_core::store::{RunQuery, Store};
use herma_core::{Timestamp, VERSION};

use crate::approvers::Approvers;
use crate::installation::Installation;

/// Directories of every system whose contents do not last.
pub const SYSTEM_TEMP_DIRS: [&str; 4] = ["/tmp", "/var/tmp", "/dev/shm", "/run"];

/// How many runs are counted at once.
const PAGE: u32 = 1_000;

/// Counts the runs of what is admitted since a time; none where that cannot be told.
pub type RunsSince<'a> = dyn Fn(&AdmissionId, Timestamp) -> Option<u64> + 'a;

/// What is the case when somebody asks whether something is admitted. All of it comes in as values.
pub struct Situation<'a> {
    /// Whose signatures count.
    pub approvers: Approvers,
    /// The time.
    pub now: Timestamp,
    /// herma's version.
    pub herma_version: &'a str,
    /// Directories whose contents do not last.
    pub temp_dirs: Vec<PathBuf>,
    /// herma's home: what lies there lasts as long as the admission itself, wherever that is.
    pub home: PathBuf,
    /// How many runs were started since then, with the one that asks.
    pub runs_since: Box<RunsSince<'a>>,
}

impl Installation {
    /// What is the case now, for a run that is in the store already.
    #[must_use]
    pub fn situation(&self) -> Situation<'_> {
        Situation {
            approvers: self.approvers(),
            now: self.clock.now(),
            herma_version: VERSION,
            temp_dirs: SYSTEM_TEMP_DIRS.map(PathBuf::from).to_vec(),
            home: self.home.root().to_owned(),
            runs_since: Box::new(|id, since| count(&self.store, id, since)),
        }
    }
}

/// The runs of an engine; for models and targets all runs, because the store does not know those.
fn count(store: &dyn Store, id: &AdmissionId, since: Timestamp) -> Option<u64> {
    let mut counted = 0;
    let mut before = None;
    loop {
        let page = store.runs(&RunQuery { limit: PAGE, before, status: None }).ok()?;
        let counts = |run: &&herma_core::store::RunSummary| {
            run.started_at >= since
                && match id {
                    AdmissionId::Engine(engine) => run.engine == *engine,
                    AdmissionId::Model(_) | AdmissionId::Target(_) => true,
                }
        };
        counted += page.iter().filter(counts).count() as u64;
        // They are in the order in which they were recorded, which a clock that was set may not agree with: all count.
        match page.last() {
            Some(last) => before = Some(last.run_id),
            None => return Some(counted),
        }
    }
}
