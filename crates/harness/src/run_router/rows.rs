//! The usage of a run, for the store.

use std::io::{self, BufReader};
use std::path::Path;

use herma_core::Report;
use herma_core::store::{StoreError, StoreErrorKind};
use herma_core::usage::UsageByModel;
use herma_evidence::layout;
use herma_router::audit;
use herma_store::BlockingStore;

use crate::file_reading::open_regular;

/// Puts what a closed run used into the store. Doing it twice changes nothing.
pub(crate) fn index(store: &BlockingStore, bundle: &Path, report: &Report) -> Result<(), StoreError> {
    match open_regular(&bundle.join(layout::MODEL_CALLS)) {
        Ok(calls) => {
            let mut used = UsageByModel::default();
            let read = audit::read(BufReader::new(calls), &report.run_id.to_string(), |call| used.add(call));
            // The index has what can be read; `herma verify` reports the rest.
            drop(read);
            store.call(|store| store.record_usage(report, &used))
        }
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(e) => Err(StoreError::new(StoreErrorKind::Unavailable, "record the usage of a run", e)),
    }
}
