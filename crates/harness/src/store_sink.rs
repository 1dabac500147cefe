//! Copies the events of a run to the store as they happen.

use std::fmt;
use std::sync::Arc;

use herma_core::Event;
use herma_evidence::EventSink;
use herma_store::EventWriter;

/// Hands every event to the writer of this process.
pub(crate) struct StoreSink(pub(crate) Arc<EventWriter>);

impl EventSink for StoreSink {
    fn appended(&self, event: &Event) {
        self.0.append(event);
    }
}

impl fmt::Debug for StoreSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StoreSink")
    }
}
