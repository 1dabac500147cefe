//! Servers that speak like `OpenAI`: vLLM, Ollama, llama.cpp and many more.

use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderValue};

use super::base_url;
use super::provider::{OverHttp, Provider};
use crate::dialect::MaximumKey;
use crate::door::Door;

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
    fn answers(&self, _: Door) -> bool {
        true
    }

    fn maximum_key(&self, door: Door) -> Option<(MaximumKey, bool)> {
        match door {
            // A server that ignores the client's key would respond without bound.
            Door::Chat => Some((self.maximum_key.unwrap_or(MaximumKey::MaxTokens), true)),
            Door::Responses => Some((MaximumKey::MaxOutputTokens, false)),
            Door::Completions => Some((MaximumKey::MaxTokens, true)),
            Door::Messages => Some((MaximumKey::MaxTokens, false)),
            Door::Embeddings | Door::CountTokens => None,
        }
    }
}

impl OverHttp for Compatible {
    fn own_url(&self) -> Option<&'static str> {
        None
    }

    fn path(&self, base: &str, door: Door) -> String {
        base_url::versioned(base, door)
    }

    fn authorize(&self, headers: &mut HeaderMap) {
        if let Some(authorization) = &self.authorization {
            headers.insert(AUTHORIZATION, authorization.clone());
        }
    }
}
