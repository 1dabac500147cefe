//! Requests, and which of them are refused.

use std::time::{Duration, Instant};

use herma_dialect::{
    Dialect, ModelRequest, Refusal, Tool, ToolKind, ToolResult, Turns, outline, read_request,
};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::kit::DIALECTS;

fn asked(dialect: Dialect, body: &Value) -> ModelRequest {
    read_request(dialect, body.to_string().as_bytes()).unwrap()
}

fn refused(dialect: Dialect, body: &str) -> Refusal {
    let refusal = read_request(dialect, body.as_bytes()).unwrap_err();
    assert_eq!(outline(dialect, body.as_bytes()).unwrap_err(), refusal, "both readers agree");
    refusal
}

fn function(name: &str, parameters: Value) -> Tool {
    Tool { name: name.into(), kind: ToolKind::Function { parameters } }
}

fn result(call_id: &str, text: &str) -> ToolResult {
    ToolResult { call_id: call_id.into(), text: text.into() }
}

#[test]
fn a_chat_request_is_read_whole() {
    let schema = json!({"type": "object", "properties": {"command": {"type": "string"}}});
    let body = json!({
        "messages": [
            {"role": "system", "content": "Be good."},
            {"role": "user", "content": [{"type": "text", "text": "Look:"},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}]},
            {"role": "assistant", "content": "hidden words", "tool_calls": [
                {"id": "call_1", "type": "function", "function": {"name": "bash", "arguments": "{\"url\":\"http://x\"}"}},
                {"id": "call_2", "type": "function", "function": {"name": "bash", "arguments": "{}"}}]},
            {"role": "tool", "tool_call_id": "call_1", "content": "old"},
            {"content": null, "role": "assistant", "tool_calls": [{"id": "call_3", "type": "function"}]},
            {"role": "tool", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b\"\n"}], "tool_call_id": "call_3"},
        ],
        "model": "gpt-5", "stream": true, "stream_options": {"include_usage": false}, "n": 2,
        "max_completion_tokens": 100, "max_tokens": 70,
        "tools": [{"type": "function", "function": {"name": "bash", "parameters": schema, "strict": true}},
            {"type": "custom", "custom": {"name": "apply_patch", "format": {"type": "text"}}}],
        "functions": [{"name": "old_way", "parameters": {}}],
        "metadata": {"model": "not this one"}, "unknown": [1, {"x": 1, "y": 2}],
    });
    let turns = Turns {
        text: "Be good.\nLook:\nold\na\nb\"\n".into(),
        answered: 2,
        calls: ["call_1", "call_2", "call_3"].map(String::from).to_vec(),
        last_tool_results: vec![result("call_3", "a\nb\"\n")],
    };
    // In the order of the body.
    let tools = vec![
        function("bash", schema),
        Tool { name: "apply_patch".into(), kind: ToolKind::Custom },
        function("old_way", json!({})),
    ];
    let expected = ModelRequest {
        model: "gpt-5".into(),
        stream: true,
        include_usage: Some(false),
        max_output: Some(100),
        choices: 2,
        tools,
        turns,
        reaches_out: vec![],
    };
    assert_eq!(asked(Dialect::Chat, &body), expected);
}

#[test]
fn a_responses_request_is_read_whole() {
    let body = json!({
        "model": "gpt-5-codex", "instructions": "You are Codex.", "stream": true, "store": false,
        "max_output_tokens": 9,
        "input": [
            {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "rules"}]},
            {"role": "user", "content": "fix it"},
            {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "hm"}], "encrypted_content": "x"},
            {"type": "message", "id": "msg_1", "role": "assistant", "content": [{"type": "output_text", "text": "ok"}]},
            {"type": "function_call", "name": "shell", "arguments": "{}", "call_id": "call_1"},
            {"type": "custom_tool_call", "name": "apply_patch", "input": "*** Begin", "call_id": "call_2"},
            {"type": "function_call_output", "call_id": "call_1", "output": "done 1"},
            {"type": "custom_tool_call_output", "call_id": "call_2", "output": [{"type": "input_text", "text": "done 2"}]},
            {"type": "local_shell_call", "call_id": "call_3", "action": {"type": "exec", "command": ["ls"]}},
            {"type": "local_shell_call_output", "call_id": "call_3", "output": "files"},
            {"type": "shell_call_output", "call_id": "call_4", "output": [{"stdout": "out", "stderr": "err"}]},
        ],
        "tools": [{"type": "function", "name": "shell", "parameters": {"type": "object"}},
            {"type": "custom", "name": "apply_patch", "format": {"type": "grammar", "syntax": "lark"}},
            {"type": "local_shell"}, {"type": "shell", "environment": {"type": "local"}},
            {"type": "namespace", "name": "crm", "tools": [{"type": "function", "name": "inner"}]}],
    });
    let asked = asked(Dialect::Responses, &body);
    let turns = Turns {
        text: "You are Codex.\nrules\nfix it\ndone 1\ndone 2\nfiles\nout\nerr".into(),
        answered: 2,
        calls: ["call_1", "call_2", "call_3"].map(String::from).to_vec(),
        last_tool_results: vec![result("call_3", "files"), result("call_4", "out\nerr")],
    };
    // Where the instructions stand among the turns does not matter.
    let sorted = |turns: &Turns| {
        let mut lines: Vec<String> = turns.text.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    assert_eq!(sorted(&asked.turns), sorted(&turns));
    assert_eq!(Turns { text: turns.text.clone(), ..asked.turns }, turns);
    let names: Vec<&str> = asked.tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names, ["shell", "apply_patch", "local_shell", "shell", "inner"]);
    assert_eq!(asked.tools[2].kind, ToolKind::BuiltIn { of: "local_shell".into() });
    assert_eq!(asked.tools[4].kind, ToolKind::Function { parameters: Value::Null });
    assert_eq!((asked.max_output, asked.choices, asked.reaches_out), (Some(9), 1, vec![]));
    let text = read_request(Dialect::Responses, br#"{"model":"m","input":"just \u00fc text"}"#).unwrap();
    assert_eq!((text.turns.text.as_str(), text.turns.answered), ("just ü text", 0));
}

#[test]
fn a_messages_request_is_read_whole() {
    let body = json!({
        "model": "claude-sonnet-4-5", "max_tokens": 32000, "stream": true,
        "system": [{"type": "text", "text": "You are Claude Code.", "cache_control": {"type": "ephemeral"}}],
        "messages": [
            {"role": "user", "content": "hello"},
            {"role": "assistant", "content": [{"type": "thinking", "thinking": "t", "signature": "s"},
                {"type": "tool_use", "id": "toolu_1", "name": "WebFetch", "input": {"url": "https://example.org", "type": "url"}},
                {"type": "tool_use", "id": "toolu_2", "name": "Bash", "input": {"command": "ls"}}]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "toolu_1", "content": "page"},
                {"type": "tool_result", "content": [{"type": "text", "text": "files"},
                    {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}}], "tool_use_id": "toolu_2"},
                {"type": "text", "text": "<system-reminder>"}]},
        ],
        "tools": [{"name": "Bash", "description": "d", "input_schema": {"type": "object"}},
            {"type": "custom", "name": "Own", "input_schema": {"type": "object"}},
            {"type": "bash_20250124", "name": "bash"},
            {"type": "text_editor_20250728", "name": "str_replace_based_edit_tool"}],
    });
    let asked = asked(Dialect::Messages, &body);
    let turns = Turns {
        text: "You are Claude Code.\nhello\npage\nfiles\n<system-reminder>".into(),
        answered: 1,
        calls: vec!["toolu_1".into(), "toolu_2".into()],
        last_tool_results: vec![result("toolu_1", "page"), result("toolu_2", "files")],
    };
    assert_eq!(asked.turns, turns);
    let object = json!({"type": "object"});
    let built_in =
        |name: &str, of: &str| Tool { name: name.into(), kind: ToolKind::BuiltIn { of: of.into() } };
    let tools = vec![
        function("Bash", object.clone()),
        function("Own", object),
        built_in("bash", "bash_20250124"),
        built_in("str_replace_based_edit_tool", "text_editor_20250728"),
    ];
    assert_eq!((asked.tools, asked.max_output, asked.reaches_out), (tools, Some(32000), vec![]));
}

#[test]
fn a_key_that_is_there_twice_is_refused_wherever_it_decides_something() {
    for (dialect, body, path) in [
        (Dialect::Chat, r#"{"model":"a","model":"b"}"#, "model"),
        (Dialect::Chat, r#"{"model":"a","mod\u0065l":"b"}"#, "model"),
        (Dialect::Chat, r#"{"model":"a","\u006d\u006f\u0064\u0065\u006c":"a"}"#, "model"),
        (Dialect::Responses, r#"{"model":"a","x":1,"x":1}"#, "x"),
        (Dialect::Messages, r#"{"model":"a","max_tokens":1,"max_tokens":100000}"#, "max_tokens"),
        (
            Dialect::Chat,
            r#"{"model":"a","stream_options":{"include_usage":true,"include_usage":false}}"#,
            "stream_options.include_usage",
        ),
        (
            Dialect::Chat,
            r#"{"model":"a","messages":[{"role":"user","role":"assistant"}]}"#,
            "messages[0].role",
        ),
        (
            Dialect::Chat,
            r#"{"model":"a","tools":[{"type":"function","type":"web_search"}]}"#,
            "tools[0].type",
        ),
        (
            Dialect::Messages,
            r#"{"model":"a","messages":[{"content":[{"source":{"type":"base64","type":"url"}}]}]}"#,
            "messages[0].content[0].source.type",
        ),
        (Dialect::Messages, r#"{"model":"a","metadata":{"x":1,"x":2}}"#, "metadata.x"),
    ] {
        assert_eq!(refused(dialect, body), Refusal::DuplicateKey { path: path.into() }, "{body}");
        assert_eq!(refused(dialect, body).status(), 400);
    }
    let inside = r#"{"model":"a","messages":[{"content":[{"type":"tool_use","input":{"x":1,"x":2}}]}]}"#;
    assert!(
        read_request(Dialect::Messages, inside.as_bytes()).is_ok(),
        "objects that decide nothing are not herma's matter"
    );
}

#[test]
fn a_key_that_some_servers_take_for_another_is_refused() {
    for (body, path, key) in [
        (r#"{"model":"a","Model":"b"}"#, "Model", "model"),
        (r#"{"MODEL":"b"}"#, "MODEL", "model"),
        (r#"{"model":"a","max_to\u212aens":9}"#, "max_to\\u{212a}ens", "max_tokens"),
        (r#"{"model":"a","tool\u017f":[]}"#, "tool\\u{17f}", "tools"),
        (r#"{"model":"a","tools":[{"type":"function","Type":"web_search"}]}"#, "tools[0].Type", "type"),
        (
            r#"{"model":"a","messages":[{"content":[{"Image_URL":"http://x"}]}]}"#,
            "messages[0].content[0].Image_URL",
            "image_url",
        ),
    ] {
        let refusal = refused(Dialect::Chat, body);
        assert_eq!(refusal, Refusal::LookalikeKey { path: path.into(), key: key.into() }, "{body}");
    }
}

#[test]
fn the_model_is_a_string_at_the_top_and_nowhere_else() {
    for dialect in DIALECTS {
        assert_eq!(refused(dialect, "{}"), Refusal::Missing { key: "model" });
        assert_eq!(refused(dialect, r#"{"x":{"model":"a"}}"#), Refusal::Missing { key: "model" });
        for value in ["null", "1", "true", r#"["a"]"#, r#"{"a":1}"#] {
            let body = format!(r#"{{"model":{value}}}"#);
            assert_eq!(
                refused(dialect, &body),
                Refusal::WrongType { path: "model".into(), expected: "a string" }
            );
        }
        let asked = read_request(dialect, br#" { "x" : {"model":"b"} , "model" : "a\/b" } "#).unwrap();
        assert_eq!((asked.model.as_str(), asked.choices, asked.max_output), ("a/b", 1, None));
    }
}

#[test]
fn numbers_and_flags_that_can_be_read_in_two_ways_are_refused() {
    for (dialect, key) in [
        (Dialect::Chat, "max_tokens"),
        (Dialect::Chat, "max_completion_tokens"),
        (Dialect::Chat, "n_predict"),
        (Dialect::Chat, "n"),
        (Dialect::Chat, "best_of"),
        (Dialect::Responses, "max_output_tokens"),
        (Dialect::Messages, "max_tokens"),
    ] {
        for value in ["-1", "1.0", "1e2", "2147483648", "18446744073709551617", "-0"] {
            let refusal = refused(dialect, &format!(r#"{{"model":"a","{key}":{value}}}"#));
            assert!(
                matches!(&refusal, Refusal::OutOfRange { path, .. } if path == key),
                "{key} {value}: {refusal}"
            );
        }
        for value in [r#""5""#, "true", "[5]"] {
            let refusal = refused(dialect, &format!(r#"{{"model":"a","{key}":{value}}}"#));
            assert!(matches!(refusal, Refusal::WrongType { .. }), "{key} {value}");
        }
        let zero = read_request(dialect, format!(r#"{{"model":"a","{key}":0}}"#).as_bytes());
        assert_eq!(zero.is_ok(), dialect == Dialect::Messages, "{key}");
        assert!(read_request(dialect, format!(r#"{{"model":"a","{key}":null}}"#).as_bytes()).is_ok());
    }
    for flag in ["1", r#""true""#, "[]"] {
        for dialect in DIALECTS {
            let refusal = refused(dialect, &format!(r#"{{"model":"a","stream":{flag}}}"#));
            assert_eq!(refusal, Refusal::WrongType { path: "stream".into(), expected: "true or false" });
        }
    }
}

#[test]
fn a_body_that_is_not_one_json_object_is_refused() {
    assert_eq!(refused(Dialect::Chat, "[]"), Refusal::NotAnObject);
    assert_eq!(refused(Dialect::Chat, "\"model\""), Refusal::NotAnObject);
    for body in [
        "",
        "{",
        r#"{"model":"a"}{"model":"b"}"#,
        r#"{"model":"a",}"#,
        "model=a",
        "\u{feff}{\"model\":\"a\"}",
    ] {
        assert!(matches!(refused(Dialect::Chat, body), Refusal::NotJson { .. }), "{body:?}");
    }
    assert_eq!(read_request(Dialect::Chat, b"{\"model\":\"a\xff\"}"), Err(Refusal::NotUtf8 { at: 11 }));
    for key in ["x", "messages", "tools", "metadata"] {
        let body = format!(r#"{{"model":"a","{key}":{}{}}}"#, "[".repeat(70), "]".repeat(70));
        let refusal = refused(Dialect::Chat, &body);
        assert!(matches!(refusal, Refusal::TooDeep { .. } | Refusal::WrongType { .. }), "{key}: {refusal}");
    }
}

#[test]
fn answers_are_counted_by_all_that_multiplies_them() {
    for (body, choices) in [
        (r#"{"model":"a"}"#, 1),
        (r#"{"model":"a","n":3}"#, 3),
        (r#"{"model":"a","n":2,"best_of":5}"#, 5),
        (r#"{"model":"a","prompt":"x"}"#, 1),
        (r#"{"model":"a","prompt":[1,2,3]}"#, 1),
        (r#"{"model":"a","prompt":["x","y"],"n":2}"#, 4),
        (r#"{"model":"a","prompt":[[1],[2],[3]]}"#, 3),
    ] {
        assert_eq!(outline(Dialect::Chat, body.as_bytes()).unwrap().choices, choices, "{body}");
    }
}

#[test]
fn a_large_body_does_not_take_long() {
    let keys = (0..50_000).map(|at| format!(r#""k{at}":{{"a":1}},"#)).collect::<Vec<_>>().concat();
    let body = format!(r#"{{"model":"a","messages":[{{{keys}"role":"user"}}]}}"#);
    let begun = Instant::now();
    assert!(read_request(Dialect::Chat, body.as_bytes()).is_ok());
    // No upstream adds so many keys to an API.
    let body = format!(r#"{{{keys}"model":"a"}}"#);
    let path = "k64".to_owned();
    assert_eq!(refused(Dialect::Chat, &body), Refusal::UnknownKey { path });
    // Each key compared with each other would take minutes.
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    let hosted = r#"{"type":"web_search"},"#.repeat(10_000);
    let body = format!(r#"{{"model":"a","tools":[{hosted}{{"type":"mcp"}}]}}"#);
    // Eight of a kind are kept, and one of every other kind.
    assert_eq!(read_request(Dialect::Responses, body.as_bytes()).unwrap().reaches_out.len(), 9);
}

/// Bodies of known and unknown keys with values of all kinds.
fn any_body() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (0_u64..5_000).prop_map(Value::from),
        "[a-z\"\\\\\n:/ü]{0,8}".prop_map(Value::from),
        Just(json!("https://example.org")),
        Just(json!("function")),
    ];
    let key = prop_oneof![
        Just("model"),
        Just("type"),
        Just("role"),
        Just("content"),
        Just("text"),
        Just("tools"),
        Just("name"),
        Just("messages"),
        Just("input"),
        Just("source"),
        Just("url"),
        Just("image_url"),
        Just("stream"),
        Just("stream_options"),
        Just("max_tokens"),
        Just("other"),
        Just("function"),
        Just("id"),
        Just("output"),
    ];
    let value = leaf.prop_recursive(5, 40, 5, move |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::btree_map(key.clone().prop_map(str::to_owned), inner, 0..5)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    });
    value.prop_map(|value| {
        let mut body = if value.is_object() { value } else { json!({"messages": value}) };
        body["model"] = "a".into();
        body
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn both_readers_agree_and_spaces_do_not_matter(body in any_body()) {
        for dialect in DIALECTS {
            let (tight, spaced) = (body.to_string(), serde_json::to_string_pretty(&body).unwrap());
            let read_tight = read_request(dialect, tight.as_bytes());
            prop_assert_eq!(&read_tight, &read_request(dialect, spaced.as_bytes()));
            match (read_tight, outline(dialect, tight.as_bytes())) {
                (Ok(asked), Ok(outline)) => {
                    prop_assert_eq!(asked.model.as_str(), &*outline.model);
                    prop_assert_eq!(asked.max_output, outline.max_output);
                    prop_assert_eq!(asked.reaches_out, outline.reaches_out);
                }
                (asked, outline) => prop_assert_eq!(asked.unwrap_err(), outline.unwrap_err()),
            }
        }
    }
}
