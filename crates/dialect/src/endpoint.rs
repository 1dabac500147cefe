//! The API endpoints of the router.

pub use herma_core::model_call::Endpoint;

use crate::dialect::Dialect;

/// Every endpoint with its path.
pub const ENDPOINTS: &[(Endpoint, &str)] = &[
    (Endpoint::Chat, "/v1/chat/completions"),
    (Endpoint::Responses, "/v1/responses"),
    (Endpoint::Messages, "/v1/messages"),
    (Endpoint::CountTokens, "/v1/messages/count_tokens"),
    (Endpoint::Completions, "/v1/completions"),
    (Endpoint::Embeddings, "/v1/embeddings"),
];

/// The endpoint at a path. Only the exact spelling counts: no path is normalised.
#[must_use]
pub fn endpoint_at(path: &str) -> Option<Endpoint> {
    ENDPOINTS.iter().find(|(_, at)| *at == path).map(|(endpoint, _)| *endpoint)
}

/// The path of an endpoint.
#[must_use]
pub fn path_of(endpoint: Endpoint) -> &'static str {
    match endpoint {
        Endpoint::Chat => "/v1/chat/completions",
        Endpoint::Responses => "/v1/responses",
        Endpoint::Messages => "/v1/messages",
        Endpoint::CountTokens => "/v1/messages/count_tokens",
        Endpoint::Completions => "/v1/completions",
        Endpoint::Embeddings => "/v1/embeddings",
    }
}

/// The dialect of an endpoint. Completions and embeddings are read as chat.
#[must_use]
pub fn dialect_of(endpoint: Endpoint) -> Dialect {
    match endpoint {
        Endpoint::Chat | Endpoint::Completions | Endpoint::Embeddings => Dialect::Chat,
        Endpoint::Responses => Dialect::Responses,
        Endpoint::Messages | Endpoint::CountTokens => Dialect::Messages,
    }
}
