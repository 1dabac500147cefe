//! Observers of a run under way.

use herma_core::{EventType, RunId, Step};

/// Someone who watches. Nothing that it does can change the run.
pub trait Progress: Send + Sync {
    /// The run has a name.
    fn started(&self, run_id: RunId) {
        let _ = run_id;
    }

    /// This step is about to be taken.
    fn step(&self, step: Step) {
        let _ = step;
    }

    /// A sentence about work that takes a while.
    fn note(&self, text: &str) {
        let _ = text;
    }

    /// This happened.
    fn event(&self, kind: EventType, note: &str) {
        let _ = (kind, note);
    }
}

/// Nobody watches.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unwatched;

impl Progress for Unwatched {}
