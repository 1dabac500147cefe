//! The way of a run to its model: the operator's configuration, the router that is started for the run, and what it
//! recorded.

mod calls;
mod plan;
mod router;
mod rows;
mod shape;

pub(crate) use calls::{ModelResults, recover};
pub(crate) use plan::{ModelLink, RouterPlan};
pub(crate) use router::{RunRouter, end, start};
pub(crate) use rows::index;
pub use rows::{engine_started, is_probe};
pub(crate) use shape::response_shape;

use std::io;
use std::path::Path;

use herma_router::config::{BadConfig, Config};

/// The operator's configuration of the router, in herma's home.
pub const ROUTER_FILE: &str = "router.toml";

/// Reads the configuration of the router; none where the operator has written none.
pub fn router_config(home: &Path) -> Result<Option<Config>, BadConfig> {
    let file = home.join(ROUTER_FILE);
    match file.symlink_metadata() {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        _ => Config::read(&file).map(Some),
    }
}

/// The problem of a configuration as evidence may show it: without the path of herma's home.
pub(crate) fn in_words(bad: &BadConfig) -> String {
    let problems: Vec<String> = bad.problems().iter().map(ToString::to_string).collect();
    format!("{ROUTER_FILE}: {}", problems.join("; "))
}
