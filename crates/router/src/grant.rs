//! The grant of a token: its models and budgets.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::budget::{Limits, Price};
use herma_dialect::Reach;

/// The grant of one run.
#[derive(Clone, Debug)]
pub struct Grant {
    /// The id of the run, or the name of a client.
    pub run: Arc<str>,
    /// The engine, whose budget the calls count against too.
    pub engine: Option<Arc<str>>,
    /// The models, by every exact name. All others are refused.
    pub models: BTreeMap<String, Arc<AdmittedModel>>,
    /// The server-side tools that requests may use.
    pub reaches: Vec<Reach>,
    /// The run's own budget.
    pub limits: Limits,
}

/// An admitted model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdmittedModel {
    /// The upstreams, in the order in which they are tried. Never empty.
    pub chain: Vec<Link>,
    /// The most tokens of output per call, where the client names no maximum; a larger one that it names is
    /// lowered to `ceiling`.
    pub default_output: u64,
    /// The most tokens of output per call.
    pub ceiling: u64,
}

/// One link of a chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// The upstream, by its name in the configuration.
    pub upstream: Arc<str>,
    /// The model's name at that upstream.
    pub model: Arc<str>,
    /// Its price, if known. A budget in dollars refuses a model without a price.
    pub price: Option<Price>,
}
