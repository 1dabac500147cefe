//! The clients of the router besides runs, which get tokens of their own.

use herma_dialect::Reach;
use serde::{Deserialize, Deserializer};
use toml::Spanned;

use super::budgets::budget;
use super::sources::{KeySource, SourceTable};
use super::table::{Table, TableType};
use super::values::{ModelId, Name, word};
use crate::budget::Limits;

/// One client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientConfig {
    /// The source of its token.
    pub token: KeySource,
    /// The models that it may use, by their names in `[models]`. Never empty.
    pub models: Vec<String>,
    /// Its own budget.
    pub budget: Limits,
    /// The accesses that its requests may cause at an upstream.
    pub admit: Vec<Reach>,
    /// The engine whose budget its calls count against too.
    pub engine: Option<String>,
}

/// `[clients.NAME]`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ClientTable {
    pub(super) token: Spanned<Table<SourceTable>>,
    pub(super) models: Spanned<Vec<Spanned<ModelId>>>,
    #[serde(default, deserialize_with = "budget")]
    pub(super) budget: Limits,
    #[serde(default)]
    pub(super) admit: Vec<AdmittedReach>,
    pub(super) engine: Option<Name>,
}

impl TableType for ClientTable {
    const EXPECTING: &'static str = "a table with `token` and `models` in it";
}

/// An entry of `admit`.
#[derive(Clone, Copy)]
pub(super) struct AdmittedReach(pub(super) Reach);

const REACHES: &[(&str, Reach)] = &[
    ("hosted_tool", Reach::HostedTool),
    ("remote_mcp", Reach::RemoteMcp),
    ("remote_url", Reach::RemoteUrl),
    ("stored_file", Reach::StoredFile),
    ("stored_conversation", Reach::StoredConversation),
    ("background", Reach::Background),
    ("other_models", Reach::OtherModels),
];

impl<'de> Deserialize<'de> for AdmittedReach {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let problem = "is nothing that can be admitted";
        word(deserializer, "a word, like `remote_url`", problem, REACHES).map(Self)
    }
}
