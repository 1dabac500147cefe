//! What the holder of a token may do: which models it may ask, and how much of them.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::budget::{Limits, Price};
use crate::dialect::Reach;

/// What one run may ask of the router.
#[derive(Clone, Debug)]
pub struct Grant {
    /// Whose calls these are: the run's id, or the name of a client.
    pub run: Arc<str>,
    /// The engine that makes them, whose budget they count against too.
    pub engine: Option<Arc<str>>,
    /// The models, by every exact name under which they may be asked. What is not here is refused.
    pub models: BTreeMap<String, Arc<AdmittedModel>>,
    /// What requests may make an upstream do besides answering.
    pub reaches: Vec<Reach>,
    /// The run's own budget.
    pub limits: Limits,
}

/// A model that may be asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdmittedModel {
    /// Who answers, in the order in which they are tried. Never empty.
    pub chain: Vec<Link>,
    /// The most tokens of output for one answer, where the client names no maximum; a larger one that it names is
    /// lowered to `ceiling`.
    pub default_output: u64,
    /// The most tokens of output for one answer.
    pub ceiling: u64,
}

/// One place in a chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// The upstream, by its name in the configuration.
    pub upstream: Arc<str>,
    /// The model as that upstream calls it.
    pub model: Arc<str>,
    /// What it costs, where that is known. A budget in dollars refuses a model without a price.
    pub price: Option<Price>,
}
