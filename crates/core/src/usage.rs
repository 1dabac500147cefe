//! The usage of models by a run.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::budget::{Amount, Day};
use crate::model_call::{ModelCall, Sums};
use crate::units::Usd;

/// The usage of models by a run, as the router counted it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Usage {
    /// Calls that reached a model, or may have.
    pub requests: u64,
    /// Tokens sent.
    pub input_tokens: u64,
    /// Tokens received.
    pub output_tokens: u64,
    /// Its cost; calls with unknown cost count at the maximum.
    pub usd: Usd,
    /// Tokens that are charged: those sent and received, and the maximum for calls with unknown usage.
    #[serde(default, skip_serializing_if = "crate::units::is_zero")]
    pub charged_tokens: u64,
    /// Calls with unknown cost.
    #[serde(default, skip_serializing_if = "crate::units::is_zero")]
    pub unsettled: u64,
}

impl Usage {
    /// Nothing was used.
    pub const NONE: Self =
        Self { requests: 0, input_tokens: 0, output_tokens: 0, usd: Usd(0), charged_tokens: 0, unsettled: 0 };

    /// The charge against a budget.
    #[must_use]
    pub fn charged(&self) -> Amount {
        Amount { micro_usd: self.usd.0, requests: self.requests, tokens: self.charged_tokens }
    }

    /// Its cost, if it is known: tokens that cost nothing are those of a model without a price. A price of 0 is no other.
    #[must_use]
    pub fn cost(&self) -> Option<Usd> {
        let is_unpriced =
            self.usd.0 == 0 && (self.charged_tokens > 0 || self.input_tokens > 0 || self.output_tokens > 0);
        (!is_unpriced).then_some(self.usd)
    }

    /// This and what something else used.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            requests: self.requests.saturating_add(other.requests),
            input_tokens: self.input_tokens.saturating_add(other.input_tokens),
            output_tokens: self.output_tokens.saturating_add(other.output_tokens),
            usd: Usd(self.usd.0.saturating_add(other.usd.0)),
            charged_tokens: self.charged_tokens.saturating_add(other.charged_tokens),
            unsettled: self.unsettled.saturating_add(other.unsettled),
        }
    }
}

impl Default for Usage {
    fn default() -> Self {
        Self::NONE
    }
}

impl From<&Sums> for Usage {
    fn from(sums: &Sums) -> Self {
        Self {
            requests: sums.charged.requests,
            input_tokens: sums.used.input,
            output_tokens: sums.used.output,
            usd: Usd(sums.charged.micro_usd),
            charged_tokens: sums.charged.tokens,
            unsettled: sums.unsettled,
        }
    }
}

/// The prefix of the models of herma's own calls, in rows of the store. No upstream has a colon in its name.
pub const PROBE_PREFIX: &str = "probe:";

/// The usage of a run's calls, by day and by model.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UsageByModel(BTreeMap<(Day, String), Usage>);

impl UsageByModel {
    /// Adds a call that herma made itself, before the engine started. It is kept apart from those of the engine.
    pub fn add_probe(&mut self, call: &ModelCall) {
        let mut own = Self::default();
        own.add(call);
        for ((day, model), usage) in own.0 {
            self.count(day, format!("{PROBE_PREFIX}{model}"), usage);
        }
    }

    /// Adds a call. Each attempt counts for the model that it was made at; what no attempt is charged at, as with a call
    /// that the router did not survive, counts for the model that was asked for.
    pub fn add(&mut self, call: &ModelCall) {
        let mut sums = Sums::default();
        sums.add(call);
        let whole = Usage::from(&sums);
        let day = Day::of(call.time);
        let mut rest = whole;
        for (upstream, models) in &sums.by_model {
            for (model, part) in models {
                let part = Usage {
                    requests: part.charged.requests,
                    input_tokens: part.used.input,
                    output_tokens: part.used.output,
                    usd: Usd(part.charged.micro_usd),
                    charged_tokens: part.charged.tokens,
                    unsettled: 0,
                };
                rest = minus(rest, part);
                self.count(day, format!("{upstream}/{model}"), part);
            }
        }
        let last = call.attempts.last().map(|attempt| format!("{}/{}", attempt.upstream, attempt.model));
        self.count(day, last.unwrap_or_else(|| call.asked.clone()), rest);
    }

    fn count(&mut self, day: Day, model: String, used: Usage) {
        if used != Usage::NONE {
            let row = self.0.entry((day, model)).or_default();
            *row = row.plus(used);
        }
    }

    /// Each day and model with what was used, in order.
    pub fn rows(&self) -> impl Iterator<Item = (Day, &str, Usage)> {
        self.0.iter().map(|((day, model), usage)| (*day, model.as_str(), *usage))
    }
}

fn minus(whole: Usage, part: Usage) -> Usage {
    Usage {
        requests: whole.requests.saturating_sub(part.requests),
        input_tokens: whole.input_tokens.saturating_sub(part.input_tokens),
        output_tokens: whole.output_tokens.saturating_sub(part.output_tokens),
        usd: Usd(whole.usd.0.saturating_sub(part.usd.0)),
        charged_tokens: whole.charged_tokens.saturating_sub(part.charged_tokens),
        unsettled: whole.unsettled.saturating_sub(part.unsettled),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::Digest;
    use crate::model_call::{Attempt, Charge, Ended, Endpoint, TokensUsed};

    fn call(time: &str, attempts: &[(&str, u64)], settled: bool) -> ModelCall {
        let charge = |tokens| Charge { micro_usd: 2 * tokens, requests: 1, tokens };
        let attempts: Vec<Attempt> = attempts
            .iter()
            .map(|(model, tokens)| Attempt {
                charged: charge(*tokens),
                model: (*model).to_owned(),
                outcome: "answered".to_owned(),
                status: Some(200),
                upstream: "up".to_owned(),
            })
            .collect();
        let charged = match &attempts[..] {
            [] => charge(1000),
            attempts => attempts.iter().fold(Charge::default(), |sum, attempt| sum.plus(attempt.charged)),
        };
        ModelCall {
            answered: None,
            asked: "asked".to_owned(),
            attempts,
            call: Some(0),
            charged,
            endpoint: Endpoint::Chat,
            ended: Ended::Answered,
            first_byte_us: None,
            latency_us: 1,
            prev: Digest::of(b""),
            reason: None,
            request: Digest::of(b""),
            response: None,
            rewrites: Vec::new(),
            run: "run".to_owned(),
            seq: 0,
            settled,
            status: 200,
            stop: None,
            stream: false,
            time: time.parse().unwrap(),
            tool_calls: 0,
            used: settled.then(|| TokensUsed { input: 3, output: 4, ..TokensUsed::default() }),
        }
    }

    #[test]
    fn a_report_without_model_calls_is_spelled_as_before() {
        let text = serde_json::to_string(&Usage::NONE).unwrap();
        assert_eq!(text, r#"{"requests":0,"input_tokens":0,"output_tokens":0,"usd":"0.00"}"#);
        assert_eq!(serde_json::from_str::<Usage>(&text).unwrap(), Usage::NONE);
    }

    #[test]
    fn attempts_count_for_their_models_and_the_rest_for_the_last_or_the_asked_one() {
        let mut by = UsageByModel::default();
        by.add(&call("2026-01-01T23:59:59Z", &[("a", 5), ("b", 7)], true));
        by.add(&call("2026-01-02T00:00:00Z", &[], false));
        let rows: Vec<String> = by
            .rows()
            .map(|(day, model, u)| {
                let Usage { requests, input_tokens, output_tokens, usd, charged_tokens, unsettled } = u;
                format!("{day} {model} {requests} {input_tokens}+{output_tokens} {usd} {charged_tokens} {unsettled}")
            })
            .collect();
        let expected = [
            "2026-01-01 up/a 1 0+0 0.00001 5 0",
            "2026-01-01 up/b 1 3+4 0.000014 7 0",
            "2026-01-02 asked 1 0+0 0.002 1000 1",
        ];
        assert_eq!(rows, expected);
    }

    proptest! {
        #[test]
        fn the_rows_add_up_to_the_sums(calls in prop::collection::vec((0_u64..4, any::<bool>(), 0_u64..99), 0..20)) {
            let (mut by, mut sums) = (UsageByModel::default(), Sums::default());
            for (attempts, settled, tokens) in calls {
                let attempts: Vec<(&str, u64)> =
                    ["a", "b", "a"].into_iter().take(usize::try_from(attempts).unwrap()).map(|m| (m, tokens)).collect();
                let call = call("2026-01-01T12:00:00Z", &attempts, settled);
                by.add(&call);
                sums.add(&call);
            }
            let all = by.rows().fold(Usage::NONE, |sum, (_, _, usage)| sum.plus(usage));
            prop_assert_eq!(all, Usage::from(&sums));
        }
    }
}
