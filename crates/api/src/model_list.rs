//! The models that the key of an upstream reaches.

use std::time::Duration;

use herma_router::config::{BadConfig, Config, Lookup};
use herma_router::upstream::{BadUpstream, ListedModel, ListingError, Upstream, list_models};

/// The time for a provider to answer.
const TIME: Duration = Duration::from_secs(30);

/// The models of an upstream cannot be listed.
#[derive(Debug, thiserror::Error)]
pub enum ModelListError {
    /// A secret of the upstream cannot be used.
    #[error(transparent)]
    Config(#[from] BadConfig),
    /// The upstream cannot be used.
    #[error(transparent)]
    Upstream(#[from] BadUpstream),
    /// The configuration has no such upstream.
    #[error("the configuration has no upstream `{0}`")]
    UnknownUpstream(String),
    /// The provider gives no list.
    #[error(transparent)]
    Listing(#[from] ListingError),
}

/// Lists the models that the key of an upstream reaches, newest first where the provider says how old they are.
pub fn reachable_models(
    config: &Config,
    upstream: &str,
    secrets: &dyn Lookup,
) -> Result<Vec<ListedModel>, ModelListError> {
    let mut config = config.clone();
    // Only the secrets of this upstream are needed, so no others are read.
    config.upstreams.retain(|known, _| known == upstream);
    config.clients.clear();
    let secrets = config.secrets(secrets)?;
    let Some(found) = config.upstreams.get(upstream) else {
        return Err(ModelListError::UnknownUpstream(upstream.to_owned()));
    };
    let upstream = Upstream::new(upstream, found, &secrets, &config.limits)?;
    Ok(list_models(&upstream, TIME)?)
}
