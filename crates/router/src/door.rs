//! The API endpoints of the router.

pub use herma_core::model_call::Door;

use crate::dialect::Dialect;

/// Every endpoint with its path.
pub const DOORS: &[(Door, &str)] = &[
    (Door::Chat, "/v1/chat/completions"),
    (Door::Responses, "/v1/responses"),
    (Door::Messages, "/v1/messages"),
    (Door::CountTokens, "/v1/messages/count_tokens"),
    (Door::Completions, "/v1/completions"),
    (Door::Embeddings, "/v1/embeddings"),
];

/// The endpoint at a path. Only the exact spelling counts: no path is normalised.
#[must_use]
pub fn door_at(path: &str) -> Option<Door> {
    DOORS.iter().find(|(_, at)| *at == path).map(|(door, _)| *door)
}

/// The path of an endpoint.
#[must_use]
pub fn path_of(door: Door) -> &'static str {
    match door {
        Door::Chat => "/v1/chat/completions",
        Door::Responses => "/v1/responses",
        Door::Messages => "/v1/messages",
        Door::CountTokens => "/v1/messages/count_tokens",
        Door::Completions => "/v1/completions",
        Door::Embeddings => "/v1/embeddings",
    }
}

/// The dialect of an endpoint. Completions and embeddings are read as chat.
#[must_use]
pub fn dialect_of(door: Door) -> Dialect {
    match door {
        Door::Chat | Door::Completions | Door::Embeddings => Dialect::Chat,
        Door::Responses => Dialect::Responses,
        Door::Messages | Door::CountTokens => Dialect::Messages,
    }
}
