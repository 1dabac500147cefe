//! Somebody who changes a file while a run is under way.

use std::fs;
use std::path::PathBuf;
use std::sync::Mutex;

use herma_core::{EventType, RunId, Stage};
use herma_home::Home;

use crate::progress::Progress;

/// Somebody who changes a file where a run lands, or in its target, while the engine works.
pub(super) struct Meddler {
    home: Home,
    stage: Stage,
    repository: PathBuf,
    run: Mutex<Option<RunId>>,
}

impl Meddler {
    pub(super) fn new(home: &Home, stage: Stage, repository: PathBuf) -> Self {
        Self { home: home.clone(), stage, repository, run: Mutex::new(None) }
    }
}

impl Progress for Meddler {
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
