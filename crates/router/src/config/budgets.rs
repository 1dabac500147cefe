//! The budgets that all who call share.

use std::collections::BTreeMap;

use super::document::{Keys, Read};
use super::limits::budget;
use super::parse::{named, whole};
use crate::budget::Limits;

/// Budgets besides those of single clients and runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BudgetsConfig {
    /// For each day, in UTC.
    pub day: Limits,
    /// For all runs of an engine, by its name.
    pub engines: BTreeMap<String, Limits>,
}

/// `[budgets]`.
pub(super) fn budgets(document: &mut Keys<'_, '_>) -> Read<BudgetsConfig> {
    let Some(budgets) = document.get("budgets") else { return Ok(BudgetsConfig::default()) };
    let mut keys = budgets.keys("`[budgets]` with `day = { … }` or `[budgets.engines]` under it")?;
    let day = budget(keys.get("day"));
    let engines = named(keys.get("engines"), "an engine", |value| budget(Some(value)));
    keys.done();
    Ok(BudgetsConfig { day: day?, engines: whole(engines)? })
}
