//! The contract's environment: its tools and registries are there. It is built after the confinement was probed.

use std::path::PathBuf;

use herma_core::blocker::{Blocker, BlockerRecord};
use herma_destination::DestinationCapabilities;
use herma_environments::definition::parse;
use herma_environments::prepare::{PrepareError, PreparedEnvironment};
use herma_environments::registries::ClientConfiguration;
use herma_environments::tools::HostEnvironment;

use super::Case;

/// The environment with its tools and registries; none if the contract has none.
pub(super) fn find(case: Case<'_>) -> Result<Option<PreparedEnvironment>, BlockerRecord> {
    let Some(definition) = &case.order.contract.terms.environment else { return Ok(None) };
    let failed = |why: String| Blocker::EnvironmentFailed.because(why);
    let destination = case.order.destination();
    if !destination.confines() {
        return Err(BlockerRecord {
            next_step: "Set `destination: sandbox` or `docker` in the contract.".to_owned(),
            ..failed(format!(
                "an environment runs code of the project, and `{}` has no confinement",
                destination.as_str()
            ))
        });
    }
    let own_tools = case.installation.operator.own_tools();
    let written = serde_json::to_vec(definition).map_err(|e| failed(e.to_string()))?;
    if let Err(bad) = parse(&written, &own_tools) {
        return Err(BlockerRecord {
            next_step: "Correct the contract's `environment`; docs/environments.md describes every key."
                .to_owned(),
            ..failed(format!("{}; {}", bad.problem, bad.expected))
        });
    }
    let settings = case.installation.settings();
    let host = HostEnvironment {
        search_path: settings.search_path.clone(),
        home: settings.user_home.clone(),
        variables: settings.client_variables.clone(),
        never_mounted: vec![case.installation.home.root().to_owned()],
    };
    let operator = &case.installation.operator;
    let own_network = operator.own_network_registries();
    let clients = ClientConfiguration { host: &host, etc: PathBuf::from("/etc"), own_network };
    let definition = definition.clone();
    let found = if DestinationCapabilities::of(destination).shows_host_system() {
        PreparedEnvironment::find(definition, &clients, &own_tools)
    } else {
        PreparedEnvironment::find_registries(definition, &clients)
    };
    found.map(Some).map_err(|error| match error {
        PrepareError::Tool(error) => Blocker::ToolMissing.because(error.to_string()),
        PrepareError::Registry(error) => BlockerRecord {
            next_step: "Correct the configuration of the package manager that the message names.".to_owned(),
            ..failed(error.to_string())
        },
    })
}
