//! Chat Completions.

use serde_json::Value;

use super::{Event, Said, index, list, optional_text, text};

pub(super) fn stream(events: &[Event], with_usage: bool) -> Said {
    assert!(events.iter().all(|(name, _)| name.is_none()), "no event has a name");
    let (done, chunks) = events.split_last().unwrap();
    assert_eq!(done.1, "[DONE]");
    let mut chunks: Vec<Value> = chunks.iter().map(|(_, data)| serde_json::from_str(data).unwrap()).collect();
    let mut said = Said::default();
    if with_usage {
        let last = chunks.pop().unwrap();
        assert_eq!(list(&last["choices"]).len(), 0, "the chunk with usage has no choices");
        assert!(chunks.iter().all(|chunk| chunk.get("usage") == Some(&Value::Null)), "the others have none");
        head(&last, &chunks[0]);
        said.usage = Some(last["usage"].clone());
    } else {
        assert!(chunks.iter().all(|chunk| chunk.get("usage").is_none()), "nobody asked for usage");
    }
    for (at, chunk) in chunks.iter().enumerate() {
        head(chunk, &chunks[0]);
        let [choice] = list(&chunk["choices"]) else { panic!("one choice: {chunk}") };
        assert_eq!(choice["index"], 0);
        let delta = choice["delta"].as_object().unwrap();
        assert_eq!(delta.contains_key("role"), at == 0, "the role comes first and once");
        let last = at + 1 == chunks.len();
        assert_eq!(choice["finish_reason"].is_string(), last, "it ends once, at the end: {chunk}");
        if last {
            assert!(delta.is_empty());
            said.stop = text(&choice["finish_reason"]);
        }
        said.say += &optional_text(&choice["delta"]["content"]);
        said.think += &optional_text(&choice["delta"]["reasoning_content"]);
        said.refuse += &optional_text(&choice["delta"]["refusal"]);
        if let Some(calls) = delta.get("tool_calls") {
            for call in list(calls) {
                call_delta(&mut said, call);
            }
        }
    }
    said
}

fn call_delta(said: &mut Said, call: &Value) {
    let at = index(&call["index"]);
    let key = if call.get("custom").is_some() { ("custom", "input") } else { ("function", "arguments") };
    let part = text(&call[key.0][key.1]);
    if at == said.calls.len() {
        assert_eq!(call["type"], key.0);
        said.calls.push((text(&call["id"]), text(&call[key.0]["name"]), part));
    } else {
        assert_eq!(at + 1, said.calls.len(), "calls come one after the other");
        assert!(call.get("id").is_none() && call.get("type").is_none() && call[key.0].get("name").is_none());
        said.calls[at].2 += &part;
    }
}

/// The fields that are the same in all chunks.
fn head(chunk: &Value, first: &Value) {
    assert_eq!(chunk["object"], "chat.completion.chunk");
    for key in ["id", "created", "model", "system_fingerprint"] {
        assert!(!chunk[key].is_null() && chunk[key] == first[key], "{key}: {chunk}");
    }
}

pub(super) fn whole(body: &Value) -> Said {
    assert_eq!(body["object"], "chat.completion");
    assert!(text(&body["id"]).starts_with("chatcmpl-") && body["created"].is_u64());
    let [choice] = list(&body["choices"]) else { panic!("one choice: {body}") };
    let message = &choice["message"];
    assert_eq!(message["role"], "assistant");
    let calls = message.get("tool_calls").map(list).unwrap_or_default().iter().map(|call| {
        let key = if call["type"] == "custom" { ("custom", "input") } else { ("function", "arguments") };
        (text(&call["id"]), text(&call[key.0]["name"]), text(&call[key.0][key.1]))
    });
    Said {
        think: optional_text(&message["reasoning_content"]),
        say: optional_text(&message["content"]),
        refuse: optional_text(&message["refusal"]),
        calls: calls.collect(),
        stop: text(&choice["finish_reason"]),
        usage: Some(body["usage"].clone()),
    }
}
