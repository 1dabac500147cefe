//! The sums of a chain's calls.

use std::collections::BTreeMap;

use super::{Attempt, Charge, Ended, ModelCall, TokensUsed};
use crate::budget::{Day, LARGEST};

/// The sums of a chain's calls.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sums {
    /// Records.
    pub records: u64,
    /// Of these: what herma refused.
    pub refused: u64,
    /// The charges of all of them.
    pub charged: Charge,
    /// Of these: calls that are charged at the maximum, because their cost is unknown.
    pub unsettled: u64,
    /// The charges of those.
    pub unsettled_charged: Charge,
    /// The tokens of all calls that say what they used.
    pub used: TokensUsed,
    /// How many calls of their client's tools the answers ask for.
    pub tool_calls: u64,
    /// The charges of attempts, by upstream and by the model as that upstream calls it. A call that was interrupted
    /// names no attempt: it is in `charged` only.
    pub by_model: BTreeMap<String, BTreeMap<String, ModelSums>>,
    /// The charges, by the day on which a call came in.
    pub by_day: BTreeMap<Day, Charge>,
}

/// The sums of the attempts at one model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ModelSums {
    /// Attempts.
    pub attempts: u64,
    /// Their charges.
    pub charged: Charge,
    /// The tokens of those that say what they used.
    pub used: TokensUsed,
}

impl Sums {
    /// Adds a call.
    pub fn add(&mut self, call: &ModelCall) {
        self.records += 1;
        self.refused += u64::from(call.ended == Ended::Refused);
        self.charged = self.charged.plus(call.charged);
        if !call.settled {
            self.unsettled += 1;
            self.unsettled_charged = self.unsettled_charged.plus(call.charged);
        }
        let day = self.by_day.entry(Day::of(call.time)).or_default();
        *day = day.plus(call.charged);
        if let Some(used) = &call.used {
            self.used.add(used);
        }
        self.tool_calls = sum(self.tool_calls, call.tool_calls);
        let Some((last, earlier)) = call.attempts.split_last() else { return };
        for attempt in earlier {
            self.attempt(attempt, None);
        }
        // The last attempt used the tokens: no other answered.
        self.attempt(last, call.used.as_ref());
    }

    fn attempt(&mut self, attempt: &Attempt, used: Option<&TokensUsed>) {
        let Attempt { upstream, model, .. } = attempt;
        // Nearly every attempt is at a model that is known: its names are not copied.
        if let Some(sums) = self.by_model.get_mut(upstream).and_then(|models| models.get_mut(model)) {
            sums.add(attempt, used);
        } else {
            let models = self.by_model.entry(upstream.clone()).or_default();
            models.entry(model.clone()).or_default().add(attempt, used);
        }
    }
}

impl ModelSums {
    fn add(&mut self, attempt: &Attempt, used: Option<&TokensUsed>) {
        self.attempts += 1;
        self.charged = self.charged.plus(attempt.charged);
        if let Some(used) = used {
            self.used.add(used);
        }
    }
}

impl TokensUsed {
    /// Adds what another call used.
    pub fn add(&mut self, other: &Self) {
        *self = Self {
            cache_write: sum(self.cache_write, other.cache_write),
            cached_input: sum(self.cached_input, other.cached_input),
            input: sum(self.input, other.input),
            output: sum(self.output, other.output),
            reasoning: sum(self.reasoning, other.reasoning),
        };
    }
}

/// No more than JSON says exactly.
fn sum(a: u64, b: u64) -> u64 {
    a.saturating_add(b).min(LARGEST)
}
