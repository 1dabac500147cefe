//! Prices of tokens.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Amount, LARGEST};
use herma_dialect::Usage;

/// The price of a million tokens of one model, in millionths of a dollar.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Price {
    /// Tokens sent.
    pub input: u64,
    /// Tokens received, reasoning included.
    pub output: u64,
    /// Tokens sent that the provider had in its cache.
    pub cached_input: u64,
    /// Tokens sent that the provider wrote to its cache. Without it: a quarter more than `input`, which is the highest known
    /// price, so that a budget is never undercharged. If writing costs nothing extra, repeat `input`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write: Option<u64>,
    /// The same for tokens that stay in the cache for an hour. Without it: twice `input`, or `cache_write` if that is
    /// more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write_long: Option<u64>,
}

/// Prices by `provider/model`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PriceTable(BTreeMap<String, Price>);

impl PriceTable {
    /// The price of a model, if it is known.
    #[must_use]
    pub fn of(&self, model: &str) -> Option<Price> {
        self.0.get(model).copied()
    }
}

/// Prices are for so many tokens.
const MILLION: u128 = 1_000_000;

impl Price {
    /// The cost of a call, rounded up: a budget is never undercharged.
    #[must_use]
    pub fn cost_of(&self, usage: &Usage) -> u64 {
        let cached = usage.cached_input.min(usage.input);
        let written = usage.cache_write.min(usage.input - cached);
        let long = usage.cache_write_long.min(written);
        rounded_up(&[
            (usage.input - cached - written, self.input),
            (cached, self.cached_input),
            (written - long, self.cache_write()),
            (long, self.cache_write_long()),
            (usage.output, self.output),
        ])
    }

    /// The most that so many tokens can cost, whatever of the input was cached or written to a cache.
    #[must_use]
    pub fn most(&self, input: u64, output: u64) -> u64 {
        rounded_up(&[(input, self.dearest_input()), (output, self.output)])
    }

    /// The most tokens of output that so much money is enough for, after that input; none where it is not enough for the
    /// input.
    #[must_use]
    pub fn output_for(&self, micro_usd: u64, input: u64) -> Option<u64> {
        let input = u128::from(input) * u128::from(self.dearest_input());
        let rest = (u128::from(micro_usd) * MILLION).checked_sub(input)?;
        let output = rest.checked_div(u128::from(self.output)).unwrap_or(u128::MAX);
        Some(u64::try_from(output).unwrap_or(u64::MAX).min(LARGEST))
    }

    /// The dearer of both prices, for each kind of tokens: what a call can cost at most that either may answer.
    #[must_use]
    pub fn dearest(&self, other: Self) -> Self {
        Self {
            input: self.input.max(other.input),
            output: self.output.max(other.output),
            cached_input: self.cached_input.max(other.cached_input),
            cache_write: Some(self.cache_write().max(other.cache_write())),
            cache_write_long: Some(self.cache_write_long().max(other.cache_write_long())),
        }
    }

    fn cache_write(&self) -> u64 {
        self.cache_write.unwrap_or_else(|| self.input.saturating_add(self.input.div_ceil(4)))
    }

    fn cache_write_long(&self) -> u64 {
        let twice = || self.input.saturating_mul(2).max(self.cache_write.unwrap_or(0));
        self.cache_write_long.unwrap_or_else(twice)
    }

    fn dearest_input(&self) -> u64 {
        self.input.max(self.cached_input).max(self.cache_write()).max(self.cache_write_long())
    }
}

fn rounded_up(parts: &[(u64, u64)]) -> u64 {
    let part = |(tokens, price): &(u64, u64)| u128::from(*tokens) * u128::from(*price);
    let sum = parts.iter().map(part).fold(0, u128::saturating_add);
    u64::try_from(sum.div_ceil(MILLION)).unwrap_or(LARGEST).min(LARGEST)
}

/// The charge of a call with this usage. Without a price it costs no money.
#[must_use]
pub fn charge(usage: &Usage, price: Option<&Price>) -> Amount {
    let tokens = usage.input.saturating_add(usage.output);
    Amount { micro_usd: price.map_or(0, |price| price.cost_of(usage)), requests: 1, tokens }.bounded()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SONNET: Price = Price {
        input: 3_000_000,
        output: 15_000_000,
        cached_input: 300_000,
        cache_write: None,
        cache_write_long: None,
    };

    fn input(input: u64) -> Usage {
        Usage { input, ..Usage::default() }
    }

    #[test]
    fn a_part_of_a_millionth_is_charged_as_one() {
        assert_eq!(SONNET.cost_of(&input(1_000_000)), 3_000_000);
        assert_eq!(SONNET.cost_of(&Usage { cached_input: 1, ..input(1) }), 1);
        assert_eq!(SONNET.cost_of(&Usage::default()), 0);
        assert_eq!(SONNET.cost_of(&Usage { output: u64::MAX, ..input(u64::MAX) }), LARGEST);
    }

    #[test]
    fn writing_to_a_cache_costs_more_unless_somebody_said_what() {
        let all = Usage {
            cached_input: 100_000,
            cache_write: 500_000,
            cache_write_long: 200_000,
            ..input(1_000_000)
        };
        // 400k plain, 100k cached, 300k for 5 minutes, 200k for an hour.
        assert_eq!(SONNET.cost_of(&all), 1_200_000 + 30_000 + 1_125_000 + 1_200_000);
        let said = Price { cache_write: Some(0), cache_write_long: Some(1_000_000), ..SONNET };
        assert_eq!(said.cost_of(&all), 1_200_000 + 30_000 + 200_000);
        let half_said = Price { cache_write: Some(9_000_000), ..SONNET };
        assert_eq!(half_said.cache_write_long(), 9_000_000);
        assert_eq!(SONNET.most(1_000_000, 0), 6_000_000, "all of it could be written for an hour");
    }

    fn price() -> impl Strategy<Value = Price> {
        let option = || proptest::option::of(any::<u32>());
        (any::<[u32; 3]>(), option(), option()).prop_map(|(prices, write, long)| {
            let [input, output, cached_input] = prices.map(u64::from);
            let (cache_write, cache_write_long) = (write.map(u64::from), long.map(u64::from));
            Price { input, output, cached_input, cache_write, cache_write_long }
        })
    }

    proptest! {
        #[test]
        fn nothing_costs_more_than_the_most(
            price in price(), input in 0..10_000_000_u64, output in 0..10_000_000_u64, parts: [u64; 3],
        ) {
            let [cached_input, cache_write, cache_write_long] = parts.map(|part| part % 12_000_000);
            let usage = Usage { input, output, cached_input, cache_write, cache_write_long, reasoning: 0 };
            prop_assert!(price.cost_of(&usage) <= price.most(input, output));
        }

        #[test]
        fn money_is_enough_for_exactly_so_much_output(
            price in price(), micro_usd in 0..10_000_000_u64, input in 0..10_000_u64,
        ) {
            match price.output_for(micro_usd, input) {
                None => prop_assert!(price.most(input, 0) > micro_usd),
                Some(output) => {
                    prop_assert!(price.most(input, output) <= micro_usd);
                    prop_assert!(output == LARGEST || price.most(input, output + 1) > micro_usd);
                }
            }
        }
    }
}
