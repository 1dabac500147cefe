//! The way of a run to its model: the operator's configuration, the router that is started for the run, and what it
//! recorded.

mod calls;
mod plan;
mod router;
mod rows;
mod shape;

pub(crate) use calls::{recover, take_calls};
pub(crate) use plan::{ModelLink, RouterPlan};
pub(crate) use router::{RunRouter, end, start};
pub(crate) use rows::index;
pub(crate) use shape::response_shape;

use std::ffi::OsString;
use std::fmt;
use std::io;
use std::path::Path;
use std::sync::Arc;

use herma_router::config::{BadConfig, Config, Lookup};

/// The operator's configuration of the router, in herma's home.
pub const ROUTER_FILE: &str = "router.toml";

/// Where the secrets lie that the router's configuration names. The environment is read in one place of herma, which
/// gives this.
#[derive(Clone)]
pub struct SecretSource(pub Arc<dyn Lookup + Send + Sync>);

impl Default for SecretSource {
    /// No variable and no keyring.
    fn default() -> Self {
        Self(Arc::new(Nothing))
    }
}

struct Nothing;

impl Lookup for Nothing {
    fn variable(&self, _: &str) -> Option<OsString> {
        None
    }

    fn keyring(&self, _: &str, _: &str) -> Result<String, String> {
        Err("there is no keyring".to_owned())
    }
}

impl fmt::Debug for SecretSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretSource")
    }
}

/// Reads the configuration of the router; none where the operator has written none.
pub fn router_config(home: &Path) -> Result<Option<Config>, BadConfig> {
    let file = home.join(ROUTER_FILE);
    match file.symlink_metadata() {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        _ => Config::read(&file).map(Some),
    }
}

/// What is wrong with a configuration, as evidence may show it: without the place of herma's home.
pub(crate) fn in_words(bad: &BadConfig) -> String {
    let problems: Vec<String> = bad.problems().iter().map(ToString::to_string).collect();
    format!("{ROUTER_FILE}: {}", problems.join("; "))
}
