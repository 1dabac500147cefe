//! Fixed responses of APIs that scripts do not cover.

use herma_core::units::Span;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::answer::{Answer, StreamStep};
use herma_dialect::{ApiError, Dialect, ModelRequest};

/// Bytes that count as one token, as everywhere in scripts.
const BYTES_PER_TOKEN: usize = 4;
const SAID: &str = "Done.";
/// A vector of length one, and the same in the form that client libraries ask for: floats of four bytes, as base64.
const VECTOR: [f32; 4] = [1.0, 0.0, 0.0, 0.0];
const VECTOR_BASE64: &str = "AACAPwAAAAAAAAAAAAAAAA==";

/// An error.
pub(super) fn error(dialect: Dialect, error: &ApiError) -> Answer {
    let body = error.body(dialect).into_bytes();
    Answer::Error { status: error.status, headers: json_headers(), body, after: Span(0) }
}

/// The count of tokens that Anthropic answers.
pub(super) fn tokens(count: u64) -> Answer {
    whole(&json!({ "input_tokens": count }))
}

/// A text completion.
pub(super) fn completion(request: &ModelRequest, bytes: usize) -> Answer {
    let input = bytes.div_ceil(BYTES_PER_TOKEN);
    let usage = json!({ "prompt_tokens": input, "completion_tokens": 2, "total_tokens": input + 2 });
    let mut body = json!({
        "id": "cmpl-scripted",
        "object": "text_completion",
        "created": 0,
        "model": request.model,
        "choices": [{ "index": 0, "text": SAID, "logprobs": null, "finish_reason": "stop" }],
    });
    if !request.stream {
        body["usage"] = usage;
        return whole(&body);
    }
    let mut events = vec![body.clone()];
    if request.include_usage == Some(true) {
        body["choices"] = json!([]);
        body["usage"] = usage;
        events.push(body);
    }
    let event = |data: String| StreamStep::Bytes(format!("data: {data}\n\n").into_bytes());
    let steps = events.iter().map(Value::to_string).chain(["[DONE]".to_owned()]).map(event).collect();
    let headers = vec![("content-type", "text/event-stream; charset=utf-8".to_owned())];
    Answer::Stream { headers, first_byte_after: Span(0), steps }
}

/// The fields of an embeddings request besides the model.
#[derive(Deserialize)]
struct Wanted {
    #[serde(default)]
    input: Value,
    encoding_format: Option<String>,
}

/// The same vector for each input.
pub(super) fn embeddings(request: &ModelRequest, body: &[u8]) -> Answer {
    let Ok(wanted) = serde_json::from_slice::<Wanted>(body) else {
        return error(Dialect::Chat, &ApiError::new(400, "`input` or `encoding_format` cannot be read."));
    };
    // A list of numbers is one input, already in tokens.
    let inputs = wanted.input.as_array().filter(|all| !all.iter().all(Value::is_number)).map_or(1, Vec::len);
    let vector = match wanted.encoding_format.as_deref() {
        Some("base64") => json!(VECTOR_BASE64),
        _ => json!(VECTOR),
    };
    let data: Vec<Value> = (0..inputs)
        .map(|index| json!({ "object": "embedding", "index": index, "embedding": vector }))
        .collect();
    let input = body.len().div_ceil(BYTES_PER_TOKEN);
    whole(&json!({
        "object": "list",
        "data": data,
        "model": request.model,
        "usage": { "prompt_tokens": input, "total_tokens": input },
    }))
}

fn whole(body: &Value) -> Answer {
    Answer::Whole { headers: json_headers(), body: body.to_string().into_bytes(), after: Span(0) }
}

fn json_headers() -> Vec<(&'static str, String)> {
    vec![("content-type", "application/json".to_owned())]
}
