//! Answers in the three dialects: as one body, and as the events of a stream.

mod chat;
mod messages;
mod pieces;
mod responses;
mod responses_wire;
mod sse;

use std::num::NonZeroUsize;

pub(super) use sse::Event;
pub(super) use sse::Place;

use crate::reply::Reply;
use herma_dialect::{ApiError, Dialect, ModelRequest};

/// The body of an answer that is not streamed.
pub(super) fn whole(dialect: Dialect, reply: &Reply) -> Vec<u8> {
    match dialect {
        Dialect::Chat => chat::whole(reply),
        Dialect::Responses => responses::whole(reply),
        Dialect::Messages => messages::whole(reply),
    }
}

/// The events of an answer that is streamed.
pub(super) fn events(
    dialect: Dialect,
    reply: &Reply,
    chunk: NonZeroUsize,
    request: &ModelRequest,
) -> Vec<Event> {
    match dialect {
        Dialect::Chat => chat::events(reply, chunk, request.include_usage == Some(true)),
        Dialect::Responses => responses::events(reply, chunk),
        Dialect::Messages => messages::events(reply, chunk),
    }
}

/// One more piece of text, for a stream that never ends; `so_far` is what was sent.
pub(super) fn more_text(dialect: Dialect, reply: &Reply, so_far: usize) -> Vec<u8> {
    match dialect {
        Dialect::Chat => chat::more_text(reply),
        Dialect::Responses => responses::more_text(reply, so_far),
        Dialect::Messages => messages::more_text(reply),
    }
}

/// A sign of life without content.
pub(super) fn ping(dialect: Dialect) -> Vec<u8> {
    match dialect {
        Dialect::Chat | Dialect::Responses => sse::comment(),
        Dialect::Messages => messages::ping(),
    }
}

/// An event that is not JSON.
pub(super) fn malformed(dialect: Dialect) -> Vec<u8> {
    match dialect {
        Dialect::Chat => sse::malformed(None),
        Dialect::Responses => sse::malformed(Some("response.output_text.delta")),
        Dialect::Messages => sse::malformed(Some("content_block_delta")),
    }
}

/// The error that ends a stream after it began; `so_far` is how many events were sent.
pub(super) fn late_error(dialect: Dialect, reply: &Reply, so_far: usize, error: &ApiError) -> Vec<u8> {
    match dialect {
        Dialect::Chat | Dialect::Messages => error.event(dialect, so_far as u64).into_bytes(),
        // Where the model fails, and not the request, this API tells it of the response.
        Dialect::Responses => responses::failed(reply, so_far, error),
    }
}
