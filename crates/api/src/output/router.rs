//! JSON output of `herma router`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

/// A router that serves, by `herma router`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct RouterOutput {
    /// `herma.router/v1`.
    pub schema: &'static str,
    /// Where clients call.
    pub listen: String,
    /// Where the operator calls.
    pub admin: Option<String>,
    /// The names of the clients.
    pub clients: Vec<String>,
}

/// A configuration that can be served, by `herma router check`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct RouterCheckOutput {
    /// `herma.router-check/v1`.
    pub schema: &'static str,
    /// The upstreams: name and provider.
    pub upstreams: BTreeMap<String, &'static str>,
    /// The models.
    pub models: Vec<RouterModel>,
    /// The clients.
    pub clients: Vec<String>,
}

/// A model that may be asked.
#[derive(Debug, Serialize, JsonSchema)]
pub struct RouterModel {
    /// Its name.
    pub name: String,
    /// Its other names.
    pub aliases: Vec<String>,
    /// The upstreams, in order, as `upstream/model`.
    pub chain: Vec<String>,
}
