//! The totals of a run's egress decisions, counted from its events.

use serde_json::Value;

pub use crate::egress_use::{EgressMode, EgressUse};
use crate::event::{Event, EventType, Source};

/// The reason under which denials are counted whose record was withheld or cut.
const UNREADABLE: &str = "unreadable";

impl EgressUse {
    /// The totals that the events of a run report, also of one that was interrupted.
    #[must_use]
    pub fn from_events<'a>(mode: EgressMode, events: impl IntoIterator<Item = &'a Event>) -> Self {
        let mut found = Self { mode, ..Self::default() };
        for event in events {
            if event.kind != EventType::EgressDecided || event.source != Source::Harness {
                continue;
            }
            if let Ok(Some(sums)) = Self::from_data(&event.data) {
                return sums;
            }
            let word = |key| event.data.get(key).and_then(Value::as_str);
            match (word("verdict"), word("reason")) {
                (Some("allowed"), _) => found.allowed += 1,
                (Some("failed"), Some(fault)) => *found.failed.entry(fault.to_owned()).or_default() += 1,
                (Some("denied"), Some(reason)) => *found.denied.entry(reason.to_owned()).or_default() += 1,
                _ => *found.denied.entry(UNREADABLE.to_owned()).or_default() += 1,
            }
        }
        found
    }
}
