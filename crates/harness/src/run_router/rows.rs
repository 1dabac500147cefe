//! The usage of a run, for the store.

use std::io::{self, BufRead as _, BufReader};
use std::path::Path;

use herma_core::model_call::ModelCall;
use herma_core::store::{StoreError, StoreErrorKind};
use herma_core::usage::UsageByModel;
use herma_core::{Event, EventType, Report, Timestamp};
use herma_evidence::layout;
use herma_router::audit;
use herma_store::BlockingStore;

use crate::file_reading::open_regular;

/// When the engine of a run started; none if it did not.
pub fn engine_started(bundle: &Path) -> Option<Timestamp> {
    let file = open_regular(&bundle.join(layout::EVENTS)).ok()?;
    let lines = BufReader::new(file).lines().map_while(Result::ok);
    let events = lines.filter_map(|line| serde_json::from_str::<Event>(&line).ok());
    events.into_iter().find(|event| event.kind == EventType::EngineStarted).map(|event| event.ts)
}

/// Whether herma itself made the call: no other process has a token before the engine starts.
#[must_use]
pub fn is_probe(call: &ModelCall, engine_started: Option<Timestamp>) -> bool {
    engine_started.is_none_or(|started| call.time < started)
}

/// Puts what a closed run used into the store. Doing it twice changes nothing.
pub(crate) fn index(store: &BlockingStore, bundle: &Path, report: &Report) -> Result<(), StoreError> {
    match open_regular(&bundle.join(layout::MODEL_CALLS)) {
        Ok(calls) => {
            let mut used = UsageByModel::default();
            let started = engine_started(bundle);
            let read = audit::read(BufReader::new(calls), &report.run_id.to_string(), |call| {
                if is_probe(call, started) { used.add_probe(call) } else { used.add(call) }
            });
            // The index has what can be read; `herma verify` reports the rest.
            drop(read);
            store.call(|store| store.record_usage(report, &used))
        }
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(e) => Err(StoreError::new(StoreErrorKind::Unavailable, "record the usage of a run", e)),
    }
}
