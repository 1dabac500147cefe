//! The configuration as it is written: one type for each table. Every value is checked alone; [`super::resolve`] and
//! [`super::check`] check what depends on others.

use std::collections::BTreeMap;

use serde::Deserialize;
use toml::{Deserializer, Spanned};

use super::address::{AdminTable, ListenTable};
use super::budgets::BudgetsConfig;
use super::clients::ClientTable;
use super::limits::RequestLimits;
use super::locate;
use super::models::{ModelTable, PriceFields};
use super::problem::Problem;
use super::table::Table;
use super::upstreams::UpstreamTable;
use super::values::{FilePath, ModelId, Name, UpstreamModel};

/// A whole document.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Document {
    pub(super) listen: Option<Table<ListenTable>>,
    pub(super) admin: Option<Table<AdminTable>>,
    pub(super) state: Option<FilePath>,
    #[serde(default)]
    pub(super) limits: Table<RequestLimits>,
    #[serde(default)]
    pub(super) upstreams: BTreeMap<Name, Spanned<Table<UpstreamTable>>>,
    #[serde(default)]
    pub(super) models: BTreeMap<ModelId, Spanned<Table<ModelTable>>>,
    #[serde(default)]
    pub(super) prices: BTreeMap<UpstreamModel, Spanned<Table<PriceFields>>>,
    #[serde(default)]
    pub(super) budgets: Table<BudgetsConfig>,
    #[serde(default)]
    pub(super) clients: BTreeMap<Name, Table<ClientTable>>,
}

impl Document {
    /// Reads the text, up to its first problem.
    pub(super) fn parse(text: &str) -> Result<Self, Problem> {
        let deserializer = Deserializer::parse(text).map_err(|error| locate::not_toml(text, &error))?;
        Self::deserialize(deserializer).map_err(|error| locate::refused(text, &error))
    }
}
