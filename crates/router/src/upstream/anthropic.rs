//! Anthropic.

use http::{HeaderMap, HeaderName, HeaderValue};

use super::base_url;
use super::provider::{OverHttp, Provider};
use herma_dialect::MaximumKey;
use herma_dialect::endpoint::Endpoint;

const KEY: HeaderName = HeaderName::from_static("x-api-key");
const VERSION: HeaderName = HeaderName::from_static("anthropic-version");
/// The version of the API that is asked for where the client asks for none.
const USUAL_VERSION: HeaderValue = HeaderValue::from_static("2023-06-01");

/// The provider `anthropic`.
pub(super) struct Anthropic {
    /// The key as it is.
    pub(super) key: Option<HeaderValue>,
}

impl Provider for Anthropic {
    fn name(&self) -> &'static str {
        "anthropic"
    }

    fn answers(&self, endpoint: Endpoint) -> bool {
        match endpoint {
            Endpoint::Messages | Endpoint::CountTokens => true,
            Endpoint::Chat | Endpoint::Responses | Endpoint::Completions | Endpoint::Embeddings => false,
        }
    }

    fn maximum_key(&self, endpoint: Endpoint) -> Option<(MaximumKey, bool)> {
        (endpoint == Endpoint::Messages).then_some((MaximumKey::MaxTokens, false))
    }
}

impl OverHttp for Anthropic {
    fn own_url(&self) -> Option<&'static str> {
        Some("https://api.anthropic.com")
    }

    fn path(&self, base: &str, endpoint: Endpoint) -> String {
        base_url::versioned(base, endpoint)
    }

    fn authorize(&self, headers: &mut HeaderMap) {
        if let Some(key) = &self.key {
            headers.insert(KEY, key.clone());
        }
        if !headers.contains_key(&VERSION) {
            headers.insert(VERSION, USUAL_VERSION);
        }
    }
}
