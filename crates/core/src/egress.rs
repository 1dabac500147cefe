//! What a run may reach besides its model, and what came of it, in numbers.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::event::{Event, EventType, Source};

/// The word under which denials are counted whose record was withheld or cut.
const UNREADABLE: &str = "unreadable";
/// The key of the one event that holds no decision, but what all of them come to.
const SUMS: &str = "sums";

/// What a host that is not listed means.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EgressMode {
    /// It is denied.
    #[default]
    Strict,
    /// It passes and is written down as a proposal. Everything but the list holds as ever.
    Learn,
}

impl EgressMode {
    /// The name as it is written in files and on the screen.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Strict => "strict",
            Self::Learn => "learn",
        }
    }
}

/// What the egress proxy of a run decided.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EgressUse {
    /// What a host that is not listed meant.
    pub mode: EgressMode,
    /// Requests that passed.
    pub allowed: u64,
    /// Requests that did not, by reason.
    pub denied: BTreeMap<String, u64>,
    /// Requests that were allowed and failed in the network, by fault.
    pub failed: BTreeMap<String, u64>,
    /// How many of all these have no event of their own.
    pub without_an_event: u64,
    /// Bytes that left.
    pub bytes_out: u64,
    /// Bytes that came.
    pub bytes_in: u64,
}

impl EgressUse {
    /// How many requests were decided.
    #[must_use]
    pub fn decisions(&self) -> u64 {
        [self.allowed, self.all_denied(), self.all_failed()].into_iter().fold(0, u64::saturating_add)
    }

    /// How many were denied, for whatever reason.
    #[must_use]
    pub fn all_denied(&self) -> u64 {
        self.denied.values().copied().fold(0, u64::saturating_add)
    }

    /// How many failed in the network.
    #[must_use]
    pub fn all_failed(&self) -> u64 {
        self.failed.values().copied().fold(0, u64::saturating_add)
    }

    /// As the data of the last event of egress.
    #[must_use]
    pub fn to_data(&self) -> Map<String, Value> {
        let sums = serde_json::to_value(self).unwrap_or_default();
        Map::from_iter([(SUMS.to_owned(), sums)])
    }

    /// From an event's data, where it is that of the last event of egress.
    #[must_use]
    pub fn from_data(data: &Map<String, Value>) -> Option<Result<Self, String>> {
        let sums = data.get(SUMS)?;
        Some(serde_json::from_value(sums.clone()).map_err(|e| e.to_string()))
    }

    /// What the events of a run tell that did not come to its end.
    #[must_use]
    pub fn from_events<'a>(mode: EgressMode, events: impl IntoIterator<Item = &'a Event>) -> Self {
        let mut found = Self { mode, ..Self::default() };
        for event in events {
            if event.kind != EventType::EgressDecided || event.source != Source::Harness {
                continue;
            }
            if let Some(Ok(sums)) = Self::from_data(&event.data) {
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
