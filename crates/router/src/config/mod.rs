//! The configuration of a router: a TOML file, read strictly. What it does not know it refuses, with the place. No
//! secret stands in it, only where each lies.

mod address;
mod bad;
mod budgets;
mod check;
mod clients;
mod document;
mod grants;
mod limits;
mod models;
mod names;
mod parse;
mod prices;
mod private_file;
mod reload;
mod secrets;
mod sources;
mod upstreams;
mod url;

use std::collections::BTreeMap;
use std::path::PathBuf;

pub use address::Address;
pub use bad::{BadConfig, Problem};
pub use budgets::BudgetsConfig;
pub use clients::ClientConfig;
pub use limits::RequestLimits;
pub use models::ModelConfig;
pub use parse::MAX_BYTES;
pub use reload::CannotReload;
pub use secrets::{Lookup, Secrets};
pub use sources::{KeySource, UrlSource};
pub use upstreams::{Http, HttpVersion, ProviderConfig, UpstreamConfig};

use crate::budget::Price;

/// What an operator decided for one router.
#[derive(Clone, Debug)]
pub struct Config {
    /// The file it was read from, which errors name.
    pub file: PathBuf,
    /// Where clients call.
    pub listen: Address,
    /// Where the operator calls. Never where clients do.
    pub admin: Option<Address>,
    /// The directory of audit and budgets.
    pub state: PathBuf,
    /// How large requests may be, and how long anything may take.
    pub limits: RequestLimits,
    /// Who answers, by the name that chains call them by.
    pub upstreams: BTreeMap<String, UpstreamConfig>,
    /// What may be asked, by its name.
    pub models: BTreeMap<String, ModelConfig>,
    /// What models cost, by `upstream/model`.
    pub prices: BTreeMap<String, Price>,
    /// The budgets that all clients share.
    pub budgets: BudgetsConfig,
    /// Who may ask, besides runs.
    pub clients: BTreeMap<String, ClientConfig>,
}

impl Config {
    /// A whole configuration to start from, with a word on each key.
    #[must_use]
    pub fn example() -> &'static str {
        include_str!("example.toml")
    }
}
