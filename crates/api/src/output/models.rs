//! Output of `herma models --json` and `herma usage --json`.

use herma_core::contract::ContractId;
use herma_core::report::Admission;
use herma_core::store::UsageBy;
use herma_core::units::Usd;
use schemars::JsonSchema;
use serde::Serialize;

/// `herma models --json`. It never holds an endpoint or a key.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ModelsOutput {
    /// `herma.models/v1`.
    pub schema: &'static str,
    /// Whether there is a `router.toml` in herma's home.
    pub configured: bool,
    /// Every model that is configured or has an admission, by name.
    pub models: Vec<ModelRow>,
}

/// A model in a list.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ModelRow {
    /// `UPSTREAM/MODEL`: what a contract names as `provider` and `model`.
    pub model: String,
    /// The provider of the upstream: `openai`, `anthropic`, `compatible` or `scripted`; none where no upstream of that
    /// name is configured.
    pub provider: Option<String>,
    /// Further names that it may be asked by, where a run may ask it.
    pub aliases: Vec<String>,
    /// The price of a million tokens; none where it is unknown, and then no budget in dollars can be kept.
    pub price: Option<PriceShown>,
    /// Whether it is admitted.
    pub admission: Admission,
    /// Why.
    pub admission_detail: String,
    /// The next step before a run; none if nothing is missing.
    pub next_step: Option<String>,
}

/// The price of a million tokens, in US dollars.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct PriceShown {
    /// Tokens sent.
    pub input: Usd,
    /// Tokens received.
    pub output: Usd,
    /// Tokens sent that the provider had in its cache.
    pub cached_input: Usd,
}

/// `herma usage --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct UsageOutput {
    /// `herma.usage/v1`.
    pub schema: &'static str,
    /// The grouping.
    pub by: UsageBy,
    /// The usage of each group.
    pub rows: Vec<UsageItem>,
    /// The usage of all groups.
    pub total: UsageItem,
}

/// The usage of a group.
#[derive(Debug, Serialize, JsonSchema)]
pub struct UsageItem {
    /// The run, engine, model or day; `total` for all.
    pub key: String,
    /// The contract, if the group is a run that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub contract_id: Option<ContractId>,
    /// The agents' calls.
    pub usage: UsageShown,
    /// herma's own calls, by which it asks before a run how the model answers.
    pub probes: UsageShown,
}

/// The usage of models.
#[derive(Debug, Serialize, JsonSchema)]
pub struct UsageShown {
    /// Calls that reached a model, or may have.
    pub requests: u64,
    /// Tokens sent.
    pub input_tokens: u64,
    /// Tokens received.
    pub output_tokens: u64,
    /// Tokens that are charged.
    pub charged_tokens: u64,
    /// The cost in US dollars; null if it is unknown, as for a model without a price.
    pub usd: Option<Usd>,
    /// Calls with unknown usage, counted at their maximum.
    pub unsettled: u64,
}
