//! Responses.

use serde_json::{Value, json};

use super::{Event, Said, index, list, text, typed};

pub(super) fn stream(events: &[Event]) -> Said {
    let mut numbered = events.iter().map(typed).enumerate().map(|(at, (kind, event))| {
        assert_eq!(index(&event["sequence_number"]), at, "no number is left out");
        (kind, event)
    });
    for wanted in ["response.created", "response.in_progress"] {
        let (kind, event) = numbered.next().unwrap();
        assert_eq!(kind, wanted);
        assert_eq!(event["response"]["status"], "in_progress");
        assert!(list(&event["response"]["output"]).is_empty() && event["response"]["usage"].is_null());
    }
    let mut items: Vec<Value> = Vec::new();
    let mut end = None;
    while let Some((kind, event)) = numbered.next() {
        if kind == "response.completed" || kind == "response.incomplete" {
            assert_eq!(kind, format!("response.{}", text(&event["response"]["status"])));
            end = Some(event["response"].clone());
            break;
        }
        assert_eq!(kind, "response.output_item.added");
        assert_eq!(index(&event["output_index"]), items.len());
        let mut inner = Vec::new();
        let done = loop {
            let (kind, event) = numbered.next().unwrap();
            assert_eq!(index(&event["output_index"]), items.len());
            if kind == "response.output_item.done" {
                break event["item"].clone();
            }
            inner.push((kind, event));
        };
        read_item(&event["item"], &inner, &done);
        items.push(done);
    }
    assert_eq!(numbered.next(), None, "nothing comes after the end");
    let end = end.expect("the response ends");
    assert_eq!(end["output"], Value::Array(items), "the response is its items");
    whole(&end)
}

fn read_item(added: &Value, inner: &[(String, Value)], done: &Value) {
    for key in ["id", "type", "call_id", "name"] {
        assert_eq!(added.get(key), done.get(key), "{key}");
    }
    assert!(inner.iter().all(|(_, event)| event["item_id"] == done["id"]));
    let kinds: Vec<&str> = inner.iter().map(|(kind, _)| kind.as_str()).collect();
    let joined: String = inner.iter().filter_map(|(_, event)| event.get("delta")).map(text).collect();
    let of = |kind: &str| inner.iter().find(|(known, _)| known == kind).map(|(_, event)| event).unwrap();
    let framed = |first: &[&str], delta: &str, last: &[&str]| {
        let middle = kinds.len().checked_sub(first.len() + last.len()).unwrap();
        let wanted: Vec<&str> =
            first.iter().copied().chain(vec![delta; middle]).chain(last.iter().copied()).collect();
        assert_eq!(kinds, wanted);
    };
    match text(&done["type"]).as_str() {
        "reasoning" => {
            framed(
                &["response.reasoning_summary_part.added"],
                "response.reasoning_summary_text.delta",
                &["response.reasoning_summary_text.done", "response.reasoning_summary_part.done"],
            );
            assert_eq!(of("response.reasoning_summary_text.done")["text"], joined);
            assert_eq!(done["summary"], json!([{ "type": "summary_text", "text": joined }]));
            assert_eq!(added["summary"], json!([]));
        }
        "message" => {
            let refused = kinds.contains(&"response.refusal.done");
            let (name, key) = if refused { ("refusal", "refusal") } else { ("output_text", "text") };
            let (delta, last) = (format!("response.{name}.delta"), format!("response.{name}.done"));
            framed(&["response.content_part.added"], &delta, &[&last, "response.content_part.done"]);
            assert_eq!(of(&last)[key], joined);
            assert_eq!(of("response.content_part.done")["part"], done["content"][0]);
            assert_eq!(done["content"][0][key], joined);
            assert_eq!((&added["content"], &added["status"]), (&json!([]), &json!("in_progress")));
        }
        "function_call" => {
            let last = "response.function_call_arguments.done";
            framed(&[], "response.function_call_arguments.delta", &[last]);
            assert_eq!(of(last)["arguments"], joined);
            assert_eq!((&added["arguments"], &done["arguments"]), (&json!(""), &json!(joined)));
        }
        "custom_tool_call" => {
            let last = "response.custom_tool_call_input.done";
            framed(&[], "response.custom_tool_call_input.delta", &[last]);
            assert_eq!(of(last)["input"], joined);
            assert_eq!((&added["input"], &done["input"]), (&json!(""), &json!(joined)));
        }
        "local_shell_call" | "shell_call" | "apply_patch_call" => assert!(kinds.is_empty()),
        other => panic!("no item of this API: {other}"),
    }
}

pub(super) fn whole(body: &Value) -> Said {
    assert_eq!(body["object"], "response");
    assert!(text(&body["id"]).starts_with("resp_"));
    let mut said = Said { usage: Some(body["usage"].clone()), ..Said::default() };
    said.stop = match text(&body["status"]).as_str() {
        "incomplete" => text(&body["incomplete_details"]["reason"]),
        status => status.to_owned(),
    };
    for item in list(&body["output"]) {
        let call = |input: String| {
            let name = item.get("name").map_or_else(|| text(&item["type"]), text);
            (text(&item["call_id"]), name, input)
        };
        match text(&item["type"]).as_str() {
            "reasoning" => list(&item["summary"]).iter().for_each(|part| said.think += &text(&part["text"])),
            "message" => list(&item["content"]).iter().for_each(|part| match text(&part["type"]).as_str() {
                "refusal" => said.refuse += &text(&part["refusal"]),
                _ => said.say += &text(&part["text"]),
            }),
            "function_call" => said.calls.push(call(text(&item["arguments"]))),
            "custom_tool_call" => said.calls.push(call(text(&item["input"]))),
            "local_shell_call" | "shell_call" => said.calls.push(call(item["action"].to_string())),
            "apply_patch_call" => said.calls.push(call(item["operation"].to_string())),
            other => panic!("no item of this API: {other}"),
        }
    }
    said
}
