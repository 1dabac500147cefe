//! The readable text of a model's response, in any API.

use serde_json::Value;

use super::http::HttpResponse;
use super::{Ask, Dialect};

/// The text of a response or an error. A response without text is returned as it is.
pub(super) fn text(ask: &Ask, answer: &HttpResponse) -> String {
    let body = String::from_utf8_lossy(&answer.body);
    let whole: Option<Value> = serde_json::from_str(&body).ok();
    let error = whole.as_ref().and_then(|value| value.pointer("/error/message")?.as_str());
    if let Some(error) = error {
        return error.to_owned();
    }
    let said: String = match (&whole, ask.stream) {
        (Some(value), false) => whole_text(ask.dialect, value),
        (None, true) => events(&body).map(|event| piece(ask.dialect, &event)).collect(),
        _ => String::new(),
    };
    if said.is_empty() { body.trim().chars().take(2000).collect() } else { said }
}

fn whole_text(dialect: Dialect, value: &Value) -> String {
    let list = |at: &str| value.pointer(at).and_then(Value::as_array).cloned().unwrap_or_default();
    match dialect {
        Dialect::Chat => string(value, "/choices/0/message/content"),
        Dialect::Messages => list("/content").iter().map(|block| string(block, "/text")).collect(),
        Dialect::Responses => list("/output")
            .iter()
            .filter_map(|item| item.pointer("/content")?.as_array())
            .flatten()
            .map(|part| string(part, "/text"))
            .collect(),
    }
}

/// The text that one event of a stream adds.
fn piece(dialect: Dialect, event: &Value) -> String {
    match dialect {
        Dialect::Chat => string(event, "/choices/0/delta/content"),
        Dialect::Messages => string(event, "/delta/text"),
        Dialect::Responses if event["type"] == "response.output_text.delta" => string(event, "/delta"),
        Dialect::Responses => String::new(),
    }
}

/// The data of each JSON event.
fn events(body: &str) -> impl Iterator<Item = Value> {
    body.lines().filter_map(|line| serde_json::from_str(line.strip_prefix("data:")?).ok())
}

fn string(value: &Value, at: &str) -> String {
    value.pointer(at).and_then(Value::as_str).unwrap_or_default().to_owned()
}
