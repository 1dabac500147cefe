//! Anthropic Messages.

use serde_json::Value;

use super::{Event, Said, index, list, text, typed};

pub(super) fn stream(events: &[Event]) -> Said {
    let mut events = events.iter().map(typed).filter(|(kind, _)| kind != "ping").peekable();
    let (kind, start) = events.next().unwrap();
    assert_eq!(kind, "message_start");
    let message = &start["message"];
    message_head(message);
    assert!(list(&message["content"]).is_empty() && message["stop_reason"].is_null());
    let mut said = Said::default();
    let mut blocks = 0;
    while let Some((_, start)) = events.next_if(|(kind, _)| kind == "content_block_start") {
        assert_eq!(index(&start["index"]), blocks);
        let block = &start["content_block"];
        let mut parts = Vec::new();
        while let Some((_, delta)) = events.next_if(|(kind, _)| kind == "content_block_delta") {
            assert_eq!(index(&delta["index"]), blocks);
            parts.push(delta["delta"].clone());
        }
        let (kind, stop) = events.next().unwrap();
        assert_eq!((kind.as_str(), index(&stop["index"])), ("content_block_stop", blocks));
        read_block(&mut said, block, &parts);
        blocks += 1;
    }
    let (kind, end) = events.next().unwrap();
    assert_eq!(kind, "message_delta");
    said.stop = text(&end["delta"]["stop_reason"]);
    let mut usage = message["usage"].clone();
    assert!(usage["output_tokens"].as_u64() <= end["usage"]["output_tokens"].as_u64());
    usage["output_tokens"] = end["usage"]["output_tokens"].clone();
    said.usage = Some(usage);
    let (kind, _) = events.next().unwrap();
    assert_eq!(kind, "message_stop");
    assert_eq!(events.next(), None, "nothing comes after the end");
    said
}

fn read_block(said: &mut Said, block: &Value, parts: &[Value]) {
    let joined = |kind: &str, key: &str| -> String {
        let of_kind = parts.iter().filter(|part| part["type"] == kind);
        of_kind.map(|part| text(&part[key])).collect()
    };
    let only = |kinds: &[&str]| {
        assert!(parts.iter().all(|part| kinds.contains(&text(&part["type"]).as_str())), "{parts:?}");
    };
    match text(&block["type"]).as_str() {
        "thinking" => {
            only(&["thinking_delta", "signature_delta"]);
            assert_eq!((&block["thinking"], &block["signature"]), (&Value::from(""), &Value::from("")));
            assert_eq!(parts.last().unwrap()["type"], "signature_delta", "the signature comes last");
            assert!(!joined("signature_delta", "signature").is_empty());
            said.think += &joined("thinking_delta", "thinking");
        }
        "text" => {
            only(&["text_delta"]);
            assert_eq!(block["text"], "");
            said.say += &joined("text_delta", "text");
        }
        "tool_use" => {
            only(&["input_json_delta"]);
            assert_eq!(block["input"], serde_json::json!({}));
            let input = joined("input_json_delta", "partial_json");
            said.calls.push((text(&block["id"]), text(&block["name"]), input));
        }
        other => panic!("no block of this API: {other}"),
    }
}

fn message_head(message: &Value) {
    assert_eq!((&message["type"], &message["role"]), (&Value::from("message"), &Value::from("assistant")));
    assert!(text(&message["id"]).starts_with("msg_"));
    for key in ["input_tokens", "output_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"] {
        assert!(message["usage"][key].is_u64(), "{key}");
    }
}

pub(super) fn whole(body: &Value) -> Said {
    message_head(body);
    let mut said =
        Said { stop: text(&body["stop_reason"]), usage: Some(body["usage"].clone()), ..Said::default() };
    for block in list(&body["content"]) {
        match text(&block["type"]).as_str() {
            "thinking" => {
                assert!(!text(&block["signature"]).is_empty());
                said.think += &text(&block["thinking"]);
            }
            "text" => said.say += &text(&block["text"]),
            "tool_use" => {
                // Arguments that are no JSON can only be a text here.
                let input = block["input"].as_str().map_or_else(|| block["input"].to_string(), str::to_owned);
                said.calls.push((text(&block["id"]), text(&block["name"]), input));
            }
            other => panic!("no block of this API: {other}"),
        }
    }
    said
}
