//! Anthropic.

use http::{HeaderMap, HeaderName, HeaderValue};

use super::base_url;
use super::provider::{OverHttp, Provider};
use crate::dialect::MaximumKey;
use crate::door::Door;

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

    fn answers(&self, door: Door) -> bool {
        match door {
            Door::Messages | Door::CountTokens => true,
            Door::Chat | Door::Responses | Door::Completions | Door::Embeddings => false,
        }
    }

    fn maximum_key(&self, door: Door) -> Option<(MaximumKey, bool)> {
        (door == Door::Messages).then_some((MaximumKey::MaxTokens, false))
    }
}

impl OverHttp for Anthropic {
    fn own_url(&self) -> Option<&'static str> {
        Some("https://api.anthropic.com")
    }

    fn path(&self, base: &str, door: Door) -> String {
        base_url::versioned(base, door)
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
