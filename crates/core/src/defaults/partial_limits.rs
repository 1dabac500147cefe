//! Limits of which each can be absent.

use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::contract::{Limits, number_or_text};
use crate::units::{Bytes, Span, Tokens, Usd};

/// Limits of a run, each as in a contract and each optional.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PartialLimits {
    /// From start to end of the engine, and again for verification.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total: Option<Span>,
    /// Until the engine's first output.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub startup: Option<Span>,
    /// Between two outputs of the engine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle: Option<Span>,
    /// Memory of each process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<Bytes>,
    /// Model tokens.
    #[serde(deserialize_with = "number_or_text", skip_serializing_if = "Option::is_none")]
    pub tokens: Option<Tokens>,
    /// Model cost.
    #[serde(deserialize_with = "number_or_text", skip_serializing_if = "Option::is_none")]
    pub usd: Option<Usd>,
}

/// The names of the limits.
const NAMES: [&str; 6] = ["total", "startup", "idle", "memory", "tokens", "usd"];

impl PartialLimits {
    /// Whether none is set.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// These, and those of `lower` where these have none.
    #[must_use]
    pub fn over(self, lower: Self) -> Self {
        Self {
            total: self.total.or(lower.total),
            startup: self.startup.or(lower.startup),
            idle: self.idle.or(lower.idle),
            memory: self.memory.or(lower.memory),
            tokens: self.tokens.or(lower.tokens),
            usd: self.usd.or(lower.usd),
        }
    }

    /// These without those that `upper` has.
    #[must_use]
    pub(super) fn without(self, upper: &Self) -> Self {
        Self {
            total: self.total.filter(|_| upper.total.is_none()),
            startup: self.startup.filter(|_| upper.startup.is_none()),
            idle: self.idle.filter(|_| upper.idle.is_none()),
            memory: self.memory.filter(|_| upper.memory.is_none()),
            tokens: self.tokens.filter(|_| upper.tokens.is_none()),
            usd: self.usd.filter(|_| upper.usd.is_none()),
        }
    }

    /// All limits of a contract: these, and a contract's defaults where these have none.
    #[must_use]
    pub fn complete(self) -> Limits {
        let default = Limits::default();
        Limits {
            total: self.total.unwrap_or(default.total),
            startup: self.startup.unwrap_or(default.startup),
            idle: self.idle.unwrap_or(default.idle),
            memory: self.memory,
            tokens: self.tokens,
            usd: self.usd,
        }
    }

    /// The first limit that is higher than in `bound`, with both values; no value means no limit.
    #[must_use]
    pub(super) fn first_above(&self, bound: &Limits) -> Option<(&'static str, String, String)> {
        fn above<T: Ord + ToString>(
            name: &'static str,
            value: Option<T>,
            most: Option<T>,
        ) -> Option<(&'static str, String, String)> {
            let (value, most) = (value?, most?);
            (value > most).then(|| (name, value.to_string(), most.to_string()))
        }
        above("total", self.total, Some(bound.total))
            .or_else(|| above("startup", self.startup, Some(bound.startup)))
            .or_else(|| above("idle", self.idle, Some(bound.idle)))
            .or_else(|| above("memory", self.memory, bound.memory))
            .or_else(|| above("tokens", self.tokens, bound.tokens))
            .or_else(|| above("usd", self.usd, bound.usd))
    }
}

/// One limit, written `NAME=VALUE`.
impl FromStr for PartialLimits {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        fn value<T: FromStr>(text: &str) -> Result<Option<T>, String>
        where
            T::Err: ToString,
        {
            text.parse().map(Some).map_err(|error: T::Err| error.to_string())
        }
        let (name, given) = text.split_once('=').ok_or("a limit is written NAME=VALUE, like `usd=2.50`")?;
        let mut limits = Self::default();
        match name {
            "total" => limits.total = value(given)?,
            "startup" => limits.startup = value(given)?,
            "idle" => limits.idle = value(given)?,
            "memory" => limits.memory = value(given)?,
            "tokens" => limits.tokens = value(given)?,
            "usd" => limits.usd = value(given)?,
            other => {
                return Err(format!("there is no limit `{other}`; there are: {}", NAMES.join(", ")));
            }
        }
        Ok(limits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_a_name_and_a_value() {
        let usd: PartialLimits = "usd=2.50".parse().unwrap();
        assert_eq!(usd.usd, Some(Usd(2_500_000)));
        let total: PartialLimits = "total=5m".parse().unwrap();
        let both = total.over(usd);
        assert_eq!((both.total, both.usd), (Some(Span(300_000)), Some(Usd(2_500_000))));
        for bad in ["usd", "usd=", "usd=much", "cost=2", "total=5"] {
            assert!(bad.parse::<PartialLimits>().is_err(), "{bad}");
        }
    }

    #[test]
    fn no_limit_is_the_highest() {
        let limits: PartialLimits = "tokens=5k".parse().unwrap();
        assert_eq!(limits.first_above(&Limits::default()), None);
        let bound = PartialLimits { tokens: Some(Tokens(4_999)), ..PartialLimits::default() }.complete();
        assert_eq!(limits.first_above(&bound).unwrap().0, "tokens");
    }
}
