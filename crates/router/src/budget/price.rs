//! What tokens cost: a table that is data.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// What a million tokens of one model cost, in millionths of a dollar.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Price {
    /// Tokens sent.
    pub input: u64,
    /// Tokens received, reasoning included.
    pub output: u64,
    /// Tokens sent that the provider had in its cache.
    pub cached_input: u64,
}

/// Prices by `provider/model`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PriceTable(BTreeMap<String, Price>);

impl PriceTable {
    /// The price of a model; none where nobody said one.
    #[must_use]
    pub fn of(&self, model: &str) -> Option<Price> {
        self.0.get(model).copied()
    }
}

impl Price {
    /// What so many tokens cost, rounded up: a budget is never undercharged.
    #[must_use]
    pub fn cost(&self, input: u64, cached_input: u64, output: u64) -> u64 {
        const MILLION: u128 = 1_000_000;
        let cached = cached_input.min(input);
        let parts = [(input - cached, self.input), (cached, self.cached_input), (output, self.output)];
        let sum: u128 = parts.iter().map(|(tokens, price)| u128::from(*tokens) * u128::from(*price)).sum();
        u64::try_from(sum.div_ceil(MILLION)).unwrap_or(u64::MAX)
    }

    /// The most that so many tokens can cost, whatever of the input was cached.
    #[must_use]
    pub fn most(&self, input: u64, output: u64) -> u64 {
        let dearest = Self { input: self.input.max(self.cached_input), ..*self };
        dearest.cost(input, 0, output)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_part_of_a_millionth_is_charged_as_one() {
        let price = Price { input: 3_000_000, output: 15_000_000, cached_input: 300_000 };
        assert_eq!(price.cost(1_000_000, 0, 0), 3_000_000);
        assert_eq!(price.cost(1, 1, 0), 1);
        assert_eq!(price.cost(0, 0, 0), 0);
        assert_eq!(price.cost(u64::MAX, 0, u64::MAX), u64::MAX);
    }

    proptest! {
        #[test]
        fn nothing_costs_more_than_the_most(
            input in 0..10_000_000_u64, cached: u64, output in 0..10_000_000_u64, prices: [u32; 3],
        ) {
            let [a, b, c] = prices.map(u64::from);
            let price = Price { input: a, output: b, cached_input: c };
            prop_assert!(price.cost(input, cached, output) <= price.most(input, output));
        }
    }
}
