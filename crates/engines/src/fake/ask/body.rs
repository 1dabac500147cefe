//! The minimal request body of each API.

use serde::Serialize;

use super::{Ask, Dialect, USUAL_OUTPUT};

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    messages: Option<[RequestMessage<'a>; 1]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    input: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    store: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_completion_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_output_tokens: Option<u64>,
}

#[derive(Serialize)]
struct RequestMessage<'a> {
    role: &'a str,
    content: &'a str,
}

/// The request's body.
pub(super) fn of(ask: &Ask, model: &str) -> Vec<u8> {
    let Ask { prompt, dialect, stream, max_output, .. } = ask;
    let in_messages = *dialect != Dialect::Responses;
    let body = Body {
        model,
        stream: *stream,
        messages: in_messages.then_some([RequestMessage { role: "user", content: prompt }]),
        input: (!in_messages).then_some(prompt),
        // herma could not see a conversation that the provider stores.
        store: (!in_messages).then_some(false),
        max_tokens: (*dialect == Dialect::Messages).then_some(max_output.unwrap_or(USUAL_OUTPUT)),
        max_completion_tokens: max_output.filter(|_| *dialect == Dialect::Chat),
        max_output_tokens: max_output.filter(|_| *dialect == Dialect::Responses),
    };
    // A body of texts and numbers always serializes.
    serde_json::to_vec(&body).unwrap_or_default()
}
