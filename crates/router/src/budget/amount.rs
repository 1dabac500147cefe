//! What is counted: calls, tokens and money.

use serde::{Deserialize, Serialize};

/// So many calls, tokens and millionths of a dollar.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Amount {
    /// Calls.
    pub requests: u64,
    /// Tokens, in and out.
    pub tokens: u64,
    /// Millionths of a dollar.
    pub micro_usd: u64,
}

/// What may be spent at most; what is not limited is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// Calls.
    pub requests: Option<u64>,
    /// Tokens, in and out.
    pub tokens: Option<u64>,
    /// Millionths of a dollar.
    pub micro_usd: Option<u64>,
}

impl Amount {
    /// Both together. What would overflow stays at the largest number, which no limit allows.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            requests: self.requests.saturating_add(other.requests),
            tokens: self.tokens.saturating_add(other.tokens),
            micro_usd: self.micro_usd.saturating_add(other.micro_usd),
        }
    }

    /// What is left of it.
    #[must_use]
    pub fn minus(self, other: Self) -> Self {
        Self {
            requests: self.requests.saturating_sub(other.requests),
            tokens: self.tokens.saturating_sub(other.tokens),
            micro_usd: self.micro_usd.saturating_sub(other.micro_usd),
        }
    }
}

impl Limits {
    /// The first thing that `amount` has too much of, by the name that people know it by.
    #[must_use]
    pub fn exceeded_by(&self, amount: Amount) -> Option<&'static str> {
        let over = |limit: Option<u64>, amount| limit.is_some_and(|limit| amount > limit);
        [
            ("requests", over(self.requests, amount.requests)),
            ("tokens", over(self.tokens, amount.tokens)),
            ("usd", over(self.micro_usd, amount.micro_usd)),
        ]
        .into_iter()
        .find_map(|(what, over)| over.then_some(what))
    }
}
