//! Deletes the kept workspace and session of a run.

use std::io;

use herma_core::store::RunSummary;
use herma_core::{RunId, Timestamp};
use herma_harness::Installation;

use crate::gc::in_use;
use crate::output::DiscardOutput;

/// Nothing was discarded.
#[derive(Debug, thiserror::Error)]
pub enum DiscardError {
    /// The run has not ended.
    #[error("run {0} is still under way")]
    UnderWay(RunId),
    /// Another run starts from it.
    #[error("a run that is under way starts from run {0}")]
    InUse(RunId),
    /// It keeps nothing.
    #[error("run {0} keeps no workspace and no session")]
    Nothing(RunId),
    /// It was done before.
    #[error("workspace and session of run {0} were discarded on {1:.0}")]
    Discarded(RunId, Timestamp),
    /// A directory could not be removed.
    #[error("what run {0} keeps could not be deleted: {1}")]
    Remove(RunId, #[source] io::Error),
}

/// Deletes what the run keeps for a later one, and records that. The bundle stays.
pub fn discard(installation: &Installation, run: &RunSummary) -> Result<DiscardOutput, DiscardError> {
    let run_id = run.run_id;
    let active = installation.home.active_runs().map_err(|e| DiscardError::Remove(run_id, e))?;
    if run.status.is_none() || active.contains(&run_id) {
        return Err(DiscardError::UnderWay(run_id));
    }
    if in_use(installation).map_err(|e| DiscardError::Remove(run_id, e))?.contains(&run_id) {
        return Err(DiscardError::InUse(run_id));
    }
    let removed =
        installation.home.discard(run_id, installation.now()).map_err(|e| DiscardError::Remove(run_id, e))?;
    if removed.is_empty() {
        return Err(match installation.home.discarded_at(run_id) {
            Some(at) => DiscardError::Discarded(run_id, at),
            None => DiscardError::Nothing(run_id),
        });
    }
    Ok(DiscardOutput { schema: "herma.discarded/v1", run_id, removed })
}
