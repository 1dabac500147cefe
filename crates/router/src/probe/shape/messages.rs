//! Anthropic Messages.

use serde_json::Value;

use super::{Call, Shape, list, text};

pub(super) fn whole(shape: &mut Shape, body: &Value) {
    list(body, "content").for_each(|one| block(shape, one));
    shape.refuses |= text(body, "stop_reason") == "refusal";
}

pub(super) fn event(shape: &mut Shape, event: &Value) {
    if let Some(one) = event.get("content_block") {
        block(shape, one);
    }
    let Some(delta) = event.get("delta") else { return };
    match text(delta, "type") {
        "text_delta" => shape.text.push_str(text(delta, "text")),
        "thinking_delta" => shape.reasons = true,
        _ => shape.refuses |= text(delta, "stop_reason") == "refusal",
    }
}

fn block(shape: &mut Shape, block: &Value) {
    match text(block, "type") {
        "text" => shape.text.push_str(text(block, "text")),
        "thinking" | "redacted_thinking" => shape.reasons = true,
        "tool_use" => shape
            .calls
            .push(Call { name: text(block, "name").to_owned(), arguments: block.get("input").cloned() }),
        _ => {}
    }
}
