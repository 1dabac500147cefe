//! The charges of child runs for models: they count against the budget of the run that asked for them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::budget::Amount;
pub use crate::child_end::ChildEnd;
use crate::event::{Event, EventType, Source};
use crate::units::Usd;

/// The charges of a run's children for models, with all below them. They count against the run's budget, and are no
/// part of what the run itself used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ChildrenUse {
    /// How many child runs the run had.
    pub runs: u64,
    /// Calls that reached a model, or may have.
    pub requests: u64,
    /// Tokens that they were charged.
    pub charged_tokens: u64,
    /// Money that they were charged.
    pub usd: Usd,
    /// How many of these runs have unknown charges, which are not in the numbers above.
    #[serde(default, skip_serializing_if = "crate::units::is_zero")]
    pub unknown: u64,
}

impl ChildrenUse {
    /// The charges that the events of a run report; none if it had no child.
    #[must_use]
    pub fn from_events<'a>(events: impl IntoIterator<Item = &'a Event>) -> Option<Self> {
        let mut found = None;
        for event in events {
            Self::take(&mut found, event);
        }
        found
    }

    /// Adds the charges of an event, if it is the end of a child.
    pub fn take(found: &mut Option<Self>, event: &Event) {
        if event.kind != EventType::ChildEnded || event.source != Source::Harness {
            return;
        }
        let end: Result<ChildEnd, _> = serde_json::from_value(Value::Object(event.data.clone()));
        found.get_or_insert_default().add(end.ok().and_then(|end| end.charged));
    }

    /// Their charges.
    #[must_use]
    pub fn charged(&self) -> Amount {
        Amount { micro_usd: self.usd.0, requests: self.requests, tokens: self.charged_tokens }
    }

    fn add(&mut self, charged: Option<Amount>) {
        let Amount { micro_usd, requests, tokens } = self.charged().plus(charged.unwrap_or_default());
        (self.usd, self.requests, self.charged_tokens) = (Usd(micro_usd), requests, tokens);
        self.runs += 1;
        self.unknown += u64::from(charged.is_none());
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Map;

    use super::*;
    use crate::digest::Digest;

    const RUN: &str = "01890a5d-ac96-774b-bcce-b302099a8057";

    fn event(source: Source, data: Map<String, Value>) -> Event {
        let (ts, kind, prev) = (jiff::Timestamp::UNIX_EPOCH, EventType::ChildEnded, Digest::of(b""));
        Event { seq: 0, ts, run_id: RUN.parse().unwrap(), kind, source, data, prev }
    }

    #[test]
    fn known_charges_of_children_are_added_and_unknown_ones_counted() {
        let ended = |tokens: Option<u64>| {
            let charged = tokens.map(|tokens| Amount { micro_usd: 3, requests: 1, tokens });
            ChildEnd { child: RUN.parse().unwrap(), status: None, charged }.to_data()
        };
        let events = [
            event(Source::Harness, ended(Some(10))),
            event(Source::Harness, ended(Some(5))),
            event(Source::Harness, ended(None)),
            // Charges that cannot be read are unknown, and an agent's events count for nothing.
            event(Source::Harness, Map::new()),
            event(Source::Agent, ended(Some(100))),
        ];
        let expected = ChildrenUse { runs: 4, requests: 2, charged_tokens: 15, usd: Usd(6), unknown: 2 };
        assert_eq!(ChildrenUse::from_events(&events), Some(expected));
        assert_eq!(ChildrenUse::from_events(&events[4..]), None);
    }
}
