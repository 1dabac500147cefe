//! `OpenAI`.

use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderValue};

use super::base_url;
use super::provider::{OverHttp, Provider};
use crate::dialect::MaximumKey;
use crate::door::Door;

/// The provider `openai`.
pub(super) struct OpenAi {
    /// `Bearer KEY`.
    pub(super) authorization: Option<HeaderValue>,
}

impl Provider for OpenAi {
    fn name(&self) -> &'static str {
        "openai"
    }

    fn answers(&self, door: Door) -> bool {
        match door {
            Door::Chat | Door::Responses | Door::Completions | Door::Embeddings => true,
            Door::Messages | Door::CountTokens => false,
        }
    }

    fn maximum_key(&self, door: Door) -> Option<(MaximumKey, bool)> {
        match door {
            // It knows `max_tokens` too, and refuses a request that has both.
            Door::Chat => Some((MaximumKey::MaxCompletionTokens, false)),
            Door::Responses => Some((MaximumKey::MaxOutputTokens, false)),
            Door::Completions => Some((MaximumKey::MaxTokens, true)),
            Door::Embeddings | Door::Messages | Door::CountTokens => None,
        }
    }
}

impl OverHttp for OpenAi {
    fn own_url(&self) -> Option<&'static str> {
        Some("https://api.openai.com")
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
