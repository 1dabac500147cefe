//! The mode of a run's egress proxy, and the totals of its decisions.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The key of the one event that has no decision, only the totals of all of them.
const SUMS: &str = "sums";

/// The treatment of hosts that are not listed.
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

/// The totals of an egress proxy's decisions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EgressUse {
    /// The treatment of hosts that are not listed.
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
    pub fn from_data(data: &Map<String, Value>) -> Result<Option<Self>, serde_json::Error> {
        data.get(SUMS).map(|sums| serde_json::from_value(sums.clone())).transpose()
    }
}
