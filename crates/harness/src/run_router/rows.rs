//! What a run used, for the index of the store.

use std::io::{self, BufReader};
use std::path::Path;

use herma_core::Report;
use herma_core::store::{StoreError, UsageStore as _};
use herma_core::usage::UsageByModel;
use herma_evidence::layout;
use herma_router::audit;
use herma_store::SqliteStore;

use crate::file_reading::open_regular;

/// Puts what a closed run used into the store. Doing it twice changes nothing.
pub(crate) fn index(store: &SqliteStore, bundle: &Path, report: &Report) -> Result<(), StoreError> {
    match open_regular(&bundle.join(layout::MODEL_CALLS)) {
        Ok(calls) => {
            let mut used = UsageByModel::default();
            let read = audit::read(BufReader::new(calls), &report.run_id.to_string(), |call| used.add(call));
            // What cannot be read is for `herma verify` to say; the index has what can.
            drop(read);
            store.record_usage(report, &used)
        }
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(e) => Err(StoreError { doing: "record what a run used", cause: e.to_string() }),
    }
}
