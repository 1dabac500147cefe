//! Responses.

use serde_json::Value;

use super::{Call, Shape, list, parsed, text};

pub(super) fn whole(shape: &mut Shape, body: &Value) {
    list(body, "output").for_each(|one| item(shape, one));
}

pub(super) fn event(shape: &mut Shape, event: &Value) {
    match text(event, "type") {
        "response.output_text.delta" => shape.text.push_str(text(event, "delta")),
        "response.refusal.delta" => shape.refuses = true,
        of if of.starts_with("response.reasoning") => shape.reasons = true,
        // A server that sends no pieces sends the item at least.
        "response.output_item.done" if shape.text.is_empty() => {
            if let Some(one) = event.get("item") {
                item(shape, one);
            }
        }
        _ => {}
    }
}

fn item(shape: &mut Shape, item: &Value) {
    match text(item, "type") {
        "reasoning" => shape.reasons = true,
        "message" => {
            for part in list(item, "content") {
                match text(part, "type") {
                    "output_text" => shape.text.push_str(text(part, "text")),
                    "refusal" => shape.refuses = true,
                    _ => {}
                }
            }
        }
        "function_call" => shape
            .calls
            .push(Call { name: text(item, "name").to_owned(), arguments: parsed(item.get("arguments")) }),
        _ => {}
    }
}
