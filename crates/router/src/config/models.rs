//! The models that clients may ask for, and their prices.

use serde::Deserialize;
use toml::Spanned;

use super::table::TableType;
use super::values::{ModelId, UpstreamModel, maybe_micro_usd, maybe_some_tokens, micro_usd};
use crate::budget::Price;

/// The most tokens of an answer, if the client names no maximum.
const DEFAULT_OUTPUT: u64 = 32_768;
/// The most tokens of an answer.
const CEILING: u64 = 131_072;

/// One model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelConfig {
    /// Upstreams with the model's name there, in the order in which they are tried. Never empty.
    pub chain: Vec<(String, String)>,
    /// Further names of the model.
    pub aliases: Vec<String>,
    /// The most tokens of an answer, if the client names no maximum.
    pub default_output: u64,
    /// The most tokens of an answer.
    pub ceiling: u64,
}

/// `[models.NAME]`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ModelTable {
    pub(super) chain: Spanned<Vec<Spanned<UpstreamModel>>>,
    #[serde(default)]
    pub(super) aliases: Vec<Spanned<ModelId>>,
    #[serde(default, deserialize_with = "maybe_some_tokens")]
    default_output: Option<u64>,
    #[serde(default, deserialize_with = "maybe_some_tokens")]
    ceiling: Option<u64>,
}

impl TableType for ModelTable {
    const EXPECTING: &'static str = "a table with `chain` in it";
}

impl ModelTable {
    /// `None` if its `default_output` is above its `ceiling`.
    pub(super) fn resolve(&self) -> Option<ModelConfig> {
        let ceiling = self.ceiling();
        if self.default_output.is_some_and(|default| default > ceiling) {
            return None;
        }
        let link =
            |link: &Spanned<UpstreamModel>| (link.get_ref().upstream.clone(), link.get_ref().model.clone());
        Some(ModelConfig {
            chain: self.chain.get_ref().iter().map(link).collect(),
            aliases: self.aliases.iter().map(|alias| alias.get_ref().0.clone()).collect(),
            default_output: self.default_output.unwrap_or(DEFAULT_OUTPUT).min(ceiling),
            ceiling,
        })
    }

    pub(super) fn ceiling(&self) -> u64 {
        self.ceiling.unwrap_or(CEILING)
    }
}

/// `prices."upstream/model"`, in US dollars for a million tokens.
#[derive(Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PriceFields {
    #[serde(deserialize_with = "micro_usd")]
    input: u64,
    #[serde(deserialize_with = "micro_usd")]
    output: u64,
    #[serde(default, deserialize_with = "maybe_micro_usd")]
    cached_input: Option<u64>,
    #[serde(default, deserialize_with = "maybe_micro_usd")]
    cache_write: Option<u64>,
    #[serde(default, deserialize_with = "maybe_micro_usd")]
    cache_write_long: Option<u64>,
}

impl TableType for PriceFields {
    const EXPECTING: &'static str = "`{ input = \"1.25\", output = \"10.00\", cached_input = \"0.125\" }`, in US dollars for a million tokens";
}

impl PriceFields {
    /// Input from a cache costs as much as other input unless the price says otherwise, so that a budget is never
    /// undercharged. [`Price`] knows the default for writing to a cache.
    pub(super) fn resolve(self) -> Price {
        Price {
            input: self.input,
            output: self.output,
            cached_input: self.cached_input.unwrap_or(self.input),
            cache_write: self.cache_write,
            cache_write_long: self.cache_write_long,
        }
    }
}
