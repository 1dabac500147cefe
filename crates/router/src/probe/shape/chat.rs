//! Chat Completions. Reasoning is no part of the API: each server has its own key for it.

use serde_json::Value;

use super::{Call, Shape, list, parsed, text};

/// The keys by which servers tell reasoning.
const REASONING: [&str; 4] = ["reasoning_content", "reasoning", "reasoning_text", "thinking"];

pub(super) fn whole(shape: &mut Shape, body: &Value) {
    let Some(message) = body.pointer("/choices/0/message") else { return };
    part(shape, message);
    shape.calls.extend(list(message, "tool_calls").map(|call| Call {
        name: call.pointer("/function/name").and_then(Value::as_str).unwrap_or_default().to_owned(),
        arguments: parsed(call.pointer("/function/arguments")),
    }));
}

pub(super) fn event(shape: &mut Shape, event: &Value) {
    if let Some(delta) = event.pointer("/choices/0/delta") {
        part(shape, delta);
    }
}

fn part(shape: &mut Shape, part: &Value) {
    shape.text.push_str(text(part, "content"));
    // Some servers give content as a list, with reasoning as a part of it.
    for piece in list(part, "content") {
        match text(piece, "type") {
            "text" => shape.text.push_str(text(piece, "text")),
            "thinking" | "reasoning" => shape.reasons = true,
            _ => {}
        }
    }
    shape.reasons |= REASONING.iter().any(|key| !text(part, key).is_empty());
    shape.reasons |= list(part, "reasoning_details").next().is_some();
    shape.refuses |= !text(part, "refusal").is_empty();
}
