//! The differences between providers, one file each. The configuration names the provider.

use http::HeaderMap;

use herma_dialect::MaximumKey;
use herma_dialect::endpoint::Endpoint;

/// Properties of every upstream, the scripted one included.
pub(super) trait Provider: Send + Sync {
    /// Its name in the configuration.
    fn name(&self) -> &'static str;

    /// Whether it has this API.
    fn answers(&self, endpoint: Endpoint) -> bool;

    /// The key that bounds its output, and whether to insert it beside other such keys, which it may not know. `None` where
    /// there is no output to bound.
    fn maximum_key(&self, endpoint: Endpoint) -> Option<(MaximumKey, bool)>;
}

/// Properties of a provider over HTTP.
pub(super) trait OverHttp: Provider {
    /// Its default URL; `None` where the configuration has to give one.
    fn own_url(&self) -> Option<&'static str>;

    /// The path of an API behind the path of the base URL.
    fn path(&self, base: &str, endpoint: Endpoint) -> String;

    /// Adds the credentials. Those of the client are removed before.
    fn authorize(&self, headers: &mut HeaderMap);
}
