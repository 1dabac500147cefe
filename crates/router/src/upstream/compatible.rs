//! Servers that speak like `OpenAI`: vLLM, Ollama, llama.cpp and many more.

use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderValue};

use super::base_url;
use super::provider::{OverHttp, Provider};
use herma_dialect::MaximumKey;
use herma_dialect::endpoint::Endpoint;

/// The provider `compatible`.
pub(super) struct Compatible {
    /// `Bearer KEY`; many need none.
    pub(super) authorization: Option<HeaderValue>,
    /// The output maximum that it knows in chat, where the configuration says so.
    pub(super) maximum_key: Option<MaximumKey>,
}

impl Provider for Compatible {
    fn name(&self) -> &'static str {
        "compatible"
    }

    /// The server itself reports APIs that it does not have.
    fn answers(&self, _: Endpoint) -> bool {
        true
    }

    fn maximum_key(&self, endpoint: Endpoint) -> Option<(MaximumKey, bool)> {
        match endpoint {
            // A server that ignores the client's key would respond without bound.
            Endpoint::Chat => Some((self.maximum_key.unwrap_or(MaximumKey::MaxTokens), true)),
            Endpoint::Responses => Some((MaximumKey::MaxOutputTokens, false)),
            Endpoint::Completions => Some((MaximumKey::MaxTokens, true)),
            Endpoint::Messages => Some((MaximumKey::MaxTokens, false)),
            Endpoint::Embeddings | Endpoint::CountTokens => None,
        }
    }
}

impl OverHttp for Compatible {
    fn own_url(&self) -> Option<&'static str> {
        None
    }

    fn path(&self, base: &str, endpoint: Endpoint) -> String {
        base_url::versioned(base, endpoint)
    }

    fn authorize(&self, headers: &mut HeaderMap) {
        if let Some(authorization) = &self.authorization {
            headers.insert(AUTHORIZATION, authorization.clone());
        }
    }
}
