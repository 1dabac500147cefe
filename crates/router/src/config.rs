//! The configuration of a router: a TOML file, read strictly. Unknown keys are refused, with their place. It holds no
//! secret, only the source of each.

mod address;
mod budgets;
mod check;
mod clients;
mod document;
mod grants;
mod limits;
mod locate;
mod models;
mod names;
mod private_file;
mod problem;
mod reload;
mod resolve;
mod secrets;
mod sources;
mod table;
mod upstreams;
mod url;
mod values;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

pub use address::Address;
pub use budgets::BudgetsConfig;
pub use clients::ClientConfig;
pub use limits::RequestLimits;
pub use models::ModelConfig;
pub use private_file::read_secret;
pub use problem::{BadConfig, Problem};
pub use reload::CannotReload;
pub use secrets::{Lookup, Secrets};
pub use sources::{KeySource, UrlSource};
pub use upstreams::{Http, HttpVersion, ProviderConfig, UpstreamConfig};

use crate::budget::Price;
use document::Document;

/// The largest configuration file, in bytes.
pub const MAX_BYTES: u64 = 1 << 20;

/// The configuration of one router.
#[derive(Clone, Debug)]
pub struct Config {
    /// The file that it was read from. Errors name it.
    pub file: PathBuf,
    /// The address for clients.
    pub listen: Address,
    /// The address for the operator. Never that for clients.
    pub admin: Option<Address>,
    /// The directory of audit records and budgets.
    pub state: PathBuf,
    /// Size limits and timeouts of requests.
    pub limits: RequestLimits,
    /// The upstreams, by the names that chains use.
    pub upstreams: BTreeMap<String, UpstreamConfig>,
    /// The models, by name.
    pub models: BTreeMap<String, ModelConfig>,
    /// The prices, by `upstream/model`.
    pub prices: BTreeMap<String, Price>,
    /// The budgets that all clients share.
    pub budgets: BudgetsConfig,
    /// The clients besides runs.
    pub clients: BTreeMap<String, ClientConfig>,
}

impl Config {
    /// A complete configuration to start from, with a comment on each key.
    #[must_use]
    pub fn example() -> &'static str {
        include_str!("config/example.toml")
    }

    /// Reads a configuration from its file.
    pub fn read(file: &Path) -> Result<Self, BadConfig> {
        let text = private_file::read_config(file, MAX_BYTES);
        Self::parse(&text.map_err(|problem| BadConfig::one(file, problem))?, file)
    }

    /// Reads a configuration from its text. Relative paths in it are relative to the directory of `file`.
    pub fn parse(text: &str, file: &Path) -> Result<Self, BadConfig> {
        if text.len() as u64 > MAX_BYTES {
            return Err(BadConfig::one(file, private_file::too_large(MAX_BYTES)));
        }
        let document = Document::parse(text).map_err(|problem| BadConfig::one(file, problem))?;
        resolve::resolve(&document, text, file)
    }
}
