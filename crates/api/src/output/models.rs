//! What `herma models --json` and `herma usage --json` print.

use herma_core::report::{Admission, Usage};
use herma_core::store::{UsageBy, UsageRow};
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
    /// What speaks at the upstream: `openai`, `anthropic`, `compatible` or `scripted`; none where no upstream of that
    /// name is configured.
    pub provider: Option<String>,
    /// Further names that it may be asked by, where a run may ask it.
    pub aliases: Vec<String>,
    /// What a million tokens cost; none where nobody said it, and then no budget in dollars can be kept.
    pub price: Option<PriceShown>,
    /// Whether it is admitted.
    pub admission: Admission,
    /// Why.
    pub admission_detail: String,
    /// What is missing next for a run; none if nothing is.
    pub next_step: Option<String>,
}

/// What a million tokens cost, in US dollars.
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
    /// What it is added up by.
    pub by: UsageBy,
    /// What each used.
    pub rows: Vec<UsageRow>,
    /// What all used together.
    pub total: Usage,
}
