//! Budgets.

use std::collections::BTreeMap;

use serde::de::Error;
use serde::{Deserialize, Deserializer};

use super::table::{Table, TableType};
use super::values::{Flaw, Name, maybe_micro_usd, maybe_requests, maybe_tokens};
use crate::budget::Limits;

/// Budgets besides those of single clients and runs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct BudgetsConfig {
    /// For each day, in UTC.
    #[serde(deserialize_with = "budget")]
    pub day: Limits,
    /// For all runs of an engine, by its name.
    #[serde(deserialize_with = "by_engine")]
    pub engines: BTreeMap<String, Limits>,
}

impl TableType for BudgetsConfig {
    const EXPECTING: &'static str = "`[budgets]` with `day = { … }` or `[budgets.engines]` under it";
}

/// A table that limits a budget.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct BudgetTable {
    #[serde(deserialize_with = "maybe_requests")]
    requests: Option<u64>,
    #[serde(deserialize_with = "maybe_tokens")]
    tokens: Option<u64>,
    #[serde(deserialize_with = "maybe_micro_usd")]
    usd: Option<u64>,
}

impl TableType for BudgetTable {
    const EXPECTING: &'static str = "`{ requests = 100, tokens = \"200k\", usd = \"2.00\" }`";
}

/// A budget that limits at least one thing.
struct Budget(Limits);

impl<'de> Deserialize<'de> for Budget {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Table(BudgetTable { requests, tokens, usd }) = Table::deserialize(deserializer)?;
        let limits = Limits { requests, tokens, micro_usd: usd };
        if limits == Limits::default() {
            let expected = "expected at least one of: requests, tokens, usd";
            return Err(D::Error::custom(Flaw::new("limits nothing", expected)));
        }
        Ok(Self(limits))
    }
}

/// A budget.
pub(super) fn budget<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Limits, D::Error> {
    Budget::deserialize(deserializer).map(|budget| budget.0)
}

fn by_engine<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BTreeMap<String, Limits>, D::Error> {
    let budgets = BTreeMap::<Name, Budget>::deserialize(deserializer)?;
    Ok(budgets.into_iter().map(|(engine, budget)| (engine.0, budget.0)).collect())
}
