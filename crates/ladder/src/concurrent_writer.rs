//! A concurrent writer: changes a file of the target while the engine works.

use std::fs;
use std::path::PathBuf;
use std::sync::Mutex;

use herma_core::{EventType, RunId, Stage};
use herma_harness::Progress;
use herma_home::Home;

/// Changes a file of the target, or of the repository that the run lands in, while the engine works.
pub(crate) struct ConcurrentWriter {
    home: Home,
    stage: Stage,
    repository: PathBuf,
    run: Mutex<Option<RunId>>,
}

impl ConcurrentWriter {
    pub(crate) fn new(home: &Home, stage: Stage, repository: PathBuf) -> Self {
        Self { home: home.clone(), stage, repository, run: Mutex::new(None) }
    }
}

impl Progress for ConcurrentWriter {
    fn started(&self, run_id: RunId) {
        if let Ok(mut run) = self.run.lock() {
            *run = Some(run_id);
        }
    }

    fn event(&self, kind: EventType, _: &str) {
        if kind != EventType::EngineStarted {
            return;
        }
        let run = self.run.lock().ok().and_then(|run| *run);
        let place = match (self.stage, run) {
            (Stage::DisposableRepo, Some(run)) => self.home.run(run).disposable(),
            _ => self.repository.clone(),
        };
        // If this cannot be written the run ends as a pass, and the case has not held.
        let _ = fs::write(place.join("meanwhile"), "somebody was here\n");
    }
}
