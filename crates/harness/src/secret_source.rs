//! The source of the secrets that the router's configuration names.

use std::ffi::OsString;
use std::fmt;
use std::sync::Arc;

use herma_router::config::Lookup;

/// Looks up the secrets that the router's configuration names. The CLI reads the environment and passes this in.
#[derive(Clone)]
pub struct SecretSource(pub Arc<dyn Lookup + Send + Sync>);

impl Default for SecretSource {
    /// A source without variables and without a keyring.
    fn default() -> Self {
        Self(Arc::new(NoSecrets))
    }
}

struct NoSecrets;

impl Lookup for NoSecrets {
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
