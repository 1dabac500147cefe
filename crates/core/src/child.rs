//! What child runs were charged for models: it counts against the budget of the run that asked for them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::budget::Amount;
use crate::event::{Event, EventType, Source};
use crate::id::RunId;
use crate::units::Usd;
use crate::verdict::Status;

/// The data of `child.ended`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ChildEnd {
    /// Which run.
    pub child: RunId,
    /// What it came to; none where that is not known.
    pub status: Option<Status>,
    /// What it and all below it were charged; none where that is not known.
    pub charged: Option<Amount>,
}

impl ChildEnd {
    /// As an event's data.
    #[must_use]
    pub fn to_data(&self) -> Map<String, Value> {
        match serde_json::to_value(self) {
            Ok(Value::Object(data)) => data,
            _ => Map::new(),
        }
    }
}

/// What the children of a run were charged for models, with all below them. It counts against the run's budget, and is no
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
    /// Of how many of these runs nobody knows what they were charged; it is not in the numbers above.
    #[serde(default, skip_serializing_if = "crate::units::is_zero")]
    pub unknown: u64,
}

impl ChildrenUse {
    /// What the events of a run tell; none where it had no child.
    #[must_use]
    pub fn from_events<'a>(events: impl IntoIterator<Item = &'a Event>) -> Option<Self> {
        let mut found = None;
        for event in events {
            Self::take(&mut found, event);
        }
        found
    }

    /// Adds what an event tells, where it tells of a child's end.
    pub fn take(found: &mut Option<Self>, event: &Event) {
        if event.kind != EventType::ChildEnded || event.source != Source::Harness {
            return;
        }
        let end: Result<ChildEnd, _> = serde_json::from_value(Value::Object(event.data.clone()));
        found.get_or_insert_default().add(end.ok().and_then(|end| end.charged));
    }

    /// What they were charged.
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
    use super::*;
    use crate::digest::Digest;

    const RUN: &str = "01890a5d-ac96-774b-bcce-b302099a8057";

    fn event(source: Source, data: Map<String, Value>) -> Event {
        let (ts, kind, prev) = (jiff::Timestamp::UNIX_EPOCH, EventType::ChildEnded, Digest::of(b""));
        Event { seq: 0, ts, run_id: RUN.parse().unwrap(), kind, source, data, prev }
    }

    #[test]
    fn what_children_were_charged_is_added_up_and_what_is_not_known_is_counted() {
        let ended = |tokens: Option<u64>| {
            let charged = tokens.map(|tokens| Amount { micro_usd: 3, requests: 1, tokens });
            ChildEnd { child: RUN.parse().unwrap(), status: None, charged }.to_data()
        };
        let events = [
            event(Source::Harness, ended(Some(10))),
            event(Source::Harness, ended(Some(5))),
            event(Source::Harness, ended(None)),
            // What cannot be read is known to nobody, and what an agent says is none of it.
            event(Source::Harness, Map::new()),
            event(Source::Agent, ended(Some(100))),
        ];
        let expected = ChildrenUse { runs: 4, requests: 2, charged_tokens: 15, usd: Usd(6), unknown: 2 };
        assert_eq!(ChildrenUse::from_events(&events), Some(expected));
        assert_eq!(ChildrenUse::from_events(&events[4..]), None);
    }
}
