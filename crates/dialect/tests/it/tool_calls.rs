//! The tool calls of an answer: each counts once, however often the answer mentions it.

use std::collections::BTreeSet;

use herma_dialect::tap::Tap;
use herma_dialect::{Dialect, read_response};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::kit::run;

/// How many calls a body asks for.
fn in_body(dialect: Dialect, body: &Value) -> u64 {
    read_response(dialect, body.to_string().as_bytes()).unwrap().tool_calls
}

/// How many calls the stream of these events asks for, whole and byte by byte.
fn in_stream(dialect: Dialect, events: &[Value]) -> u64 {
    let events: Vec<String> = events.iter().map(|event| format!("data: {event}\n\n")).collect();
    let stream = events.concat();
    let seen = run(Tap::new(dialect), [stream.as_bytes()]).1;
    assert_eq!(run(Tap::new(dialect), stream.as_bytes().chunks(1)).1, seen);
    assert!(!seen.malformed, "{stream}");
    seen.tool_calls
}

#[test]
fn only_what_the_client_has_to_make_counts() {
    for (of, calls) in [
        ("function_call", 1),
        ("custom_tool_call", 1),
        ("local_shell_call", 1),
        ("shell_call", 1),
        ("apply_patch_call", 1),
        ("computer_call", 1),
        ("tool_search_call", 0),
        ("web_search_call", 0),
        ("file_search_call", 0),
        ("code_interpreter_call", 0),
        ("image_generation_call", 0),
        ("mcp_call", 0),
        ("mcp_approval_request", 0),
        ("function_call_output", 0),
        ("reasoning", 0),
        ("message", 0),
    ] {
        let item = json!({ "id": "x", "type": of, "arguments": "{\"type\":\"function_call\"}" });
        assert_eq!(in_body(Dialect::Responses, &json!({ "output": [item] })), calls, "{of}");
        let done = json!({ "type": "response.output_item.done", "output_index": 0, "item": item });
        assert_eq!(in_stream(Dialect::Responses, &[done]), calls, "{of}");
    }
    for (of, calls) in [("tool_use", 1), ("server_tool_use", 0), ("mcp_tool_use", 0), ("text", 0)] {
        let block = json!({ "input": { "type": "tool_use" }, "type": of });
        assert_eq!(in_body(Dialect::Messages, &json!({ "content": [block, 1, null] })), calls, "{of}");
        let start = json!({ "type": "content_block_start", "index": 0, "content_block": block });
        assert_eq!(in_stream(Dialect::Messages, &[start]), calls, "{of}");
    }
}

#[test]
fn where_a_tool_runs_decides_for_those_that_could_run_in_both_places() {
    let calls = |item: Value| in_body(Dialect::Responses, &json!({ "output": [item] }));
    let shell = |environment: Value| json!({ "environment": environment, "type": "shell_call" });
    assert_eq!(calls(shell(json!({ "type": "local" }))), 1);
    assert_eq!(calls(shell(Value::Null)), 1);
    assert_eq!(calls(shell(json!({ "type": "container_reference" }))), 0);
    let search = |execution: &str| json!({ "type": "tool_search_call", "execution": execution });
    assert_eq!((calls(search("client")), calls(search("server"))), (1, 0));
}

#[test]
fn odd_lists_of_calls_are_read_as_far_as_they_say_something() {
    let message = |message: Value| json!({ "choices": [{ "message": message }] });
    for (said, calls) in [
        (json!({ "tool_calls": null }), 0),
        (json!({ "tool_calls": [] }), 0),
        (json!({ "tool_calls": "tool_calls" }), 0),
        (json!({ "tool_calls": [null, 7, {}, {}] }), 2),
        (json!({ "tool_calls": [{ "index": 7 }, { "index": 7 }] }), 1),
        (json!({ "tool_calls": [{ "index": "7" }, { "index": -1 }, { "index": 1.5 }] }), 3),
        (json!({ "tool_calls": [{ "index": 127 }, { "index": 128 }, { "index": u64::MAX }] }), 1),
        (json!({ "function_call": { "name": "x", "arguments": "{}" } }), 1),
        (json!({ "function_call": null }), 0),
        (json!({ "content": "{\"tool_calls\":[{}]}" }), 0),
        (json!({ "annotations": [{ "tool_calls": [{}] }] }), 0),
    ] {
        assert_eq!(in_body(Dialect::Chat, &message(said.clone())), calls, "{said}");
        let delta = json!({ "choices": [{ "delta": said }] });
        assert_eq!(in_stream(Dialect::Chat, &[delta.clone(), delta]), calls, "{said}");
    }
    assert_eq!(in_body(Dialect::Chat, &json!({ "choices": [null, { "message": [] }, {}] })), 0);
}

#[test]
fn an_upstream_that_makes_up_choices_takes_no_memory_with_them() {
    let chunk = |choice: u64| json!({ "choices": [{ "index": choice, "delta": { "tool_calls": [{}] } }] });
    let chunks: Vec<Value> = (0..1000).map(chunk).collect();
    assert_eq!(in_stream(Dialect::Chat, &chunks), 128);
}

/// A chunk that adds to one call of one choice. The order of keys is not the provider's alone to choose.
fn chunk((choice, index, index_last): (u64, u64, bool)) -> Value {
    let delta = json!({ "tool_calls": [{ "index": index, "function": { "arguments": "{" } }] });
    let choice = if index_last {
        json!({ "delta": delta, "index": choice })
    } else {
        json!({ "index": choice, "delta": delta })
    };
    json!({ "choices": [choice] })
}

const ITEMS: [(&str, bool); 5] = [
    ("function_call", true),
    ("custom_tool_call", true),
    ("web_search_call", false),
    ("message", false),
    ("reasoning", false),
];

const BLOCKS: [(&str, bool); 4] =
    [("tool_use", true), ("text", false), ("server_tool_use", false), ("thinking", false)];

proptest! {
    #[test]
    fn a_chat_counts_each_index_of_each_choice_once(
        chunks in prop::collection::vec((0_u64..3, 0_u64..6, any::<bool>()), 0..30),
    ) {
        let distinct: BTreeSet<(u64, u64)> = chunks.iter().map(|(choice, index, _)| (*choice, *index)).collect();
        let events: Vec<Value> = chunks.into_iter().map(chunk).collect();
        prop_assert_eq!(in_stream(Dialect::Chat, &events), distinct.len() as u64);
    }

    #[test]
    fn responses_count_each_item_once_whichever_events_tell_of_it(
        items in prop::collection::vec(0..ITEMS.len(), 0..12),
        (added, done, listed) in (any::<bool>(), any::<bool>(), any::<bool>()),
        type_last: bool,
    ) {
        let calls = items.iter().filter(|at| ITEMS[**at].1).count() as u64;
        let output: Vec<Value> = items.iter().map(|at| json!({ "type": ITEMS[*at].0 })).collect();
        prop_assert_eq!(in_body(Dialect::Responses, &json!({ "output": output })), calls);
        let mut events = vec![json!({ "type": "response.created", "response": { "output": [] } })];
        for item in &output {
            let told = [(added, "response.output_item.added"), (done, "response.output_item.done")];
            for (_, of) in told.into_iter().filter(|(is, _)| *is) {
                events.push(if type_last {
                    json!({ "item": item, "type": of })
                } else {
                    json!({ "type": of, "item": item })
                });
            }
        }
        let last = if listed { json!(output) } else { json!([]) };
        events.push(json!({ "type": "response.completed", "response": { "output": last } }));
        let expected = if added || done || listed { calls } else { 0 };
        prop_assert_eq!(in_stream(Dialect::Responses, &events), expected);
    }

    #[test]
    fn messages_count_each_block_once(blocks in prop::collection::vec(0..BLOCKS.len(), 0..12)) {
        let calls = blocks.iter().filter(|at| BLOCKS[**at].1).count() as u64;
        let content: Vec<Value> = blocks.iter().map(|at| json!({ "type": BLOCKS[*at].0 })).collect();
        prop_assert_eq!(in_body(Dialect::Messages, &json!({ "content": content })), calls);
        let begun = json!({ "type": "message_start", "message": { "content": [] } });
        let started = content.iter().map(|block| json!({ "type": "content_block_start", "content_block": block }));
        let events: Vec<Value> = [begun].into_iter().chain(started).collect();
        prop_assert_eq!(in_stream(Dialect::Messages, &events), calls);
    }
}
