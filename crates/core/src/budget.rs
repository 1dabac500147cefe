//! Budgets for models and the amounts charged to them: the values that the router, the store and the reports share.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};

use crate::store_error::StoreError;

/// The largest number that JSON says exactly. No amount is larger, so that what is written is what was counted.
pub const LARGEST: u64 = (1 << 53) - 1;

/// So many calls, tokens and millionths of a dollar. The fields are in the order of their names, as in every record
/// that is written canonically.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Amount {
    /// Millionths of a dollar.
    pub micro_usd: u64,
    /// Calls that an upstream may have seen.
    pub requests: u64,
    /// Tokens, in and out.
    pub tokens: u64,
}

/// The most that may be spent; none for what is not limited.
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

/// The scope of a budget.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    /// One run.
    Run(Arc<str>),
    /// All runs of one engine.
    Engine(Arc<str>),
    /// One day in UTC, as `2026-01-31`.
    Day(Arc<str>),
}

impl From<Day> for Scope {
    fn from(day: Day) -> Self {
        Self::Day(day.to_string().into())
    }
}

impl Serialize for Scope {
    /// As people read it: `engine codex`.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// One day in UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Day(i64);

const SECONDS_A_DAY: i64 = 86_400;

impl Day {
    /// The day of a moment.
    #[must_use]
    pub fn of(time: Timestamp) -> Self {
        let whole = time.as_second() - i64::from(time.subsec_nanosecond() < 0);
        Self(whole.div_euclid(SECONDS_A_DAY))
    }
}

impl fmt::Display for Day {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The first moment that has a name is within a day, not at its start.
        let start = Timestamp::from_second(self.0 * SECONDS_A_DAY).unwrap_or(Timestamp::MIN).to_string();
        f.write_str(start.split_once('T').map_or(&start, |(date, _)| date))
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Run(name) => write!(f, "run {name}"),
            Self::Engine(name) => write!(f, "engine {name}"),
            Self::Day(day) => write!(f, "day {day}"),
        }
    }
}

impl Amount {
    /// The sum, saturated at the largest number that can be written.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        self.with(other, u64::saturating_add).bounded()
    }

    /// The rest after so much is subtracted; zero at least.
    #[must_use]
    pub fn minus(self, other: Self) -> Self {
        self.with(other, u64::saturating_sub)
    }

    /// The smaller of each.
    #[must_use]
    pub fn min(self, other: Self) -> Self {
        self.with(other, u64::min)
    }

    /// The larger of each.
    #[must_use]
    pub fn max(self, other: Self) -> Self {
        self.with(other, u64::max)
    }

    /// With no number above [`LARGEST`].
    #[must_use]
    pub fn bounded(self) -> Self {
        self.min(Self { micro_usd: LARGEST, requests: LARGEST, tokens: LARGEST })
    }

    /// Whether it is nothing at all.
    #[must_use]
    pub fn is_nothing(self) -> bool {
        self == Self::default()
    }

    fn with(self, other: Self, join: impl Fn(u64, u64) -> u64) -> Self {
        Self {
            micro_usd: join(self.micro_usd, other.micro_usd),
            requests: join(self.requests, other.requests),
            tokens: join(self.tokens, other.tokens),
        }
    }
}

impl Limits {
    /// The rest of the limits after so much is taken. An unlimited field has [`LARGEST`] left.
    #[must_use]
    pub fn left(&self, taken: Amount) -> Amount {
        Amount {
            micro_usd: self.micro_usd.unwrap_or(LARGEST),
            requests: self.requests.unwrap_or(LARGEST),
            tokens: self.tokens.unwrap_or(LARGEST),
        }
        .minus(taken)
        .max(self.unlimited())
    }

    /// [`LARGEST`] of what is not limited, nothing of the rest.
    fn unlimited(&self) -> Amount {
        let all = |limit: Option<u64>| if limit.is_none() { LARGEST } else { 0 };
        Amount { micro_usd: all(self.micro_usd), requests: all(self.requests), tokens: all(self.tokens) }
    }
}

/// A boxed future. It owns or borrows all that it needs.
pub type Later<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Budgets that several processes spend from. A process takes a block of one before it spends it; what it took is
/// charged, durably, until it says what it spent. So a process that dies has never spent more than is charged.
pub trait Leases: Send + Sync {
    /// Takes up to `want` for a holder, as much as the limits leave of each. Unlimited fields are given in full. All
    /// holders together never get more than the limits.
    fn lease<'a>(
        &'a self,
        scope: &'a Scope,
        holder: &'a str,
        want: Amount,
        limits: Limits,
    ) -> Later<'a, Result<Amount, LeaseError>>;

    /// Of what a holder leased, it spent so much: the rest is given back. More than it leased is charged too.
    fn settle<'a>(
        &'a self,
        scope: &'a Scope,
        holder: &'a str,
        leased: Amount,
        spent: Amount,
    ) -> Later<'a, Result<(), LeaseError>>;

    /// A holder that died had spent exactly so much, ever, and holds nothing beyond it.
    fn reconcile<'a>(
        &'a self,
        scope: &'a Scope,
        holder: &'a str,
        spent: Amount,
    ) -> Later<'a, Result<(), LeaseError>>;

    /// The amount charged to a budget by all its holders.
    fn taken<'a>(&'a self, scope: &'a Scope) -> Later<'a, Result<Amount, LeaseError>>;
}

/// A shared budget could not be used.
#[derive(Clone, Debug, thiserror::Error)]
#[error("the shared budget of {scope} could not be {operation}: {source}")]
pub struct LeaseError {
    /// The budget.
    pub scope: String,
    /// The operation: `leased`, `settled`, `reconciled`, `read`.
    pub operation: &'static str,
    /// The failure of the store behind it.
    pub source: StoreError,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_ends_at_midnight_in_utc() {
        let day = |time: &str| Day::of(time.parse().unwrap());
        assert_eq!(day("2026-01-01T00:00:00Z"), day("2026-01-01T23:59:59.999999999Z"));
        assert_ne!(day("2026-01-01T23:59:59.999999999Z"), day("2026-01-02T00:00:00Z"));
        assert_ne!(day("1969-12-31T23:59:59.5Z"), day("1970-01-01T00:00:00Z"));
        for date in ["2026-02-28", "1969-12-31", "1970-01-01", "9999-12-30", "-009999-01-03"] {
            assert_eq!(day(&format!("{date}T13:00:00Z")).to_string(), date);
        }
    }

    #[test]
    fn an_unlimited_budget_is_never_used_up() {
        let limits = Limits { tokens: Some(10), ..Limits::default() };
        let left = limits.left(Amount { micro_usd: LARGEST, requests: 7, tokens: 4 });
        assert_eq!(left, Amount { micro_usd: LARGEST, requests: LARGEST, tokens: 6 });
        assert_eq!(limits.left(Amount { tokens: 11, ..Amount::default() }).tokens, 0);
    }

    #[test]
    fn sums_stay_within_what_json_says_exactly() {
        let much = Amount { micro_usd: u64::MAX, requests: LARGEST, tokens: 1 };
        assert_eq!(much.plus(much), Amount { micro_usd: LARGEST, requests: LARGEST, tokens: 2 });
    }
}
