//! `OpenAI`.

use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderValue};

use super::base_url;
use super::provider::{OverHttp, Provider};
use herma_dialect::MaximumKey;
use herma_dialect::endpoint::Endpoint;

/// The provider `openai`.
pub(super) struct OpenAi {
    /// `Bearer KEY`.
    pub(super) authorization: Option<HeaderValue>,
}

impl Provider for OpenAi {
    fn name(&self) -> &'static str {
        "openai"
    }

    fn answers(&self, endpoint: Endpoint) -> bool {
        match endpoint {
            Endpoint::Chat | Endpoint::Responses | Endpoint::Completions | Endpoint::Embeddings => true,
            Endpoint::Messages | Endpoint::CountTokens => false,
        }
    }

    fn maximum_key(&self, endpoint: Endpoint) -> Option<(MaximumKey, bool)> {
        match endpoint {
            // It knows `max_tokens` too, and refuses a request that has both.
            Endpoint::Chat => Some((MaximumKey::MaxCompletionTokens, false)),
            Endpoint::Responses => Some((MaximumKey::MaxOutputTokens, false)),
            Endpoint::Completions => Some((MaximumKey::MaxTokens, true)),
            Endpoint::Embeddings | Endpoint::Messages | Endpoint::CountTokens => None,
        }
    }
}

impl OverHttp for OpenAi {
    fn own_url(&self) -> Option<&'static str> {
        Some("https://api.openai.com")
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
