//! Properties of every script: the same request gets the same bytes, streams are well formed, and a stream says what a
//! body says.

use herma_dialect::tap::{StreamSummary, Tap};
use herma_dialect::{self, Dialect, Usage};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::check;
use super::kit::{DIALECTS, Request, body, function, scripted, streamed};

fn text() -> impl Strategy<Value = String> {
    "[a-zA-Z0-9 äöß€😀\n\t\"'\\\\{}:#,%$-]{0,90}"
}

fn call() -> impl Strategy<Value = Value> {
    prop_oneof![
        text().prop_map(|text| json!({ "shell": text })),
        (text(), text()).prop_map(|(path, text)| json!({ "write": { "path": path, "text": text } })),
        (text(), text()).prop_map(|(old, new)| json!({ "edit": { "path": "a", "old": old, "new": new } })),
        text().prop_map(|patch| json!({ "patch": patch })),
        (text(), text()).prop_map(
            |(name, value)| json!({ "tool": { "name": format!("t{name}"), "arguments": { "a": value } } })
        ),
    ]
}

prop_compose! {
    fn turn()(
        think in proptest::option::of(text()),
        say in proptest::option::of(text()),
        calls in proptest::collection::vec(call(), 0..4),
        chunk in 1_usize..40,
        usage in proptest::option::of((0_u64..9000, 0_u64..9000, 0_u64..100, 0_u64..100)),
        stop in proptest::option::of(prop_oneof![Just("length"), Just("content_filter"), Just("end")]),
    ) -> Value {
        let mut turn = json!({ "chunk": chunk });
        turn["empty"] = json!(think.is_none() && say.is_none() && calls.is_empty());
        if let Some(think) = think { turn["think"] = json!(think); }
        if let Some(say) = say { turn["say"] = json!(say); }
        if !calls.is_empty() { turn["calls"] = json!(calls); }
        if let Some(stop) = stop { turn["stop"] = json!(stop); }
        if let Some((input, output, cached, reasoning)) = usage {
            turn["usage"] = json!({ "input": input + cached, "output": output + reasoning, "cached": cached, "reasoning": reasoning });
        }
        turn
    }
}

/// Clients with different tools.
fn request(dialect: Dialect, client: usize) -> Request {
    let request = Request::new(dialect);
    match client {
        0 => request,
        1 => request.tools(
            vec![
                function("bash", &["command", "description"]),
                function("write", &["filePath", "content"]),
                function("edit", &["filePath", "oldString", "newString"]),
            ],
            vec![],
        ),
        2 if dialect == Dialect::Responses => request.tools(
            vec![],
            vec![json!({ "type": "custom", "name": "apply_patch" }), json!({ "type": "local_shell" })],
        ),
        _ => request.tools(vec![function("weather", &["city"])], vec![]),
    }
}

/// The same usage in every dialect; Messages does not tell reasoning apart.
fn counted(dialect: Dialect, body: &Value) -> Usage {
    let answered = herma_dialect::read_response(dialect, body.to_string().as_bytes()).unwrap();
    Usage { reasoning: 0, ..answered.usage.unwrap() }
}

/// The tool calls that the router counts in a stream.
fn tapped(dialect: Dialect, stream: &str) -> StreamSummary {
    let mut tap = Tap::new(dialect);
    let _ = tap.feed(stream.as_bytes());
    tap.finish().1
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn a_stream_says_what_a_body_says(turn in turn(), client in 0_usize..4, include_usage: bool) {
        // JSON is YAML.
        let script = scripted(&json!({ "name": "p", "turns": [turn] }).to_string());
        let mut usages = Vec::new();
        for dialect in DIALECTS {
            let mut request = request(dialect, client);
            let with_usage = include_usage && dialect == Dialect::Chat;
            if with_usage {
                request = request.with(json!({ "stream_options": { "include_usage": true } }));
            }
            let answer = request.answer(&script);
            prop_assert_eq!(&answer, &request.answer(&script));
            let mut from_stream = check::stream(dialect, &streamed(&answer), with_usage);
            let whole = request.whole().answer(&script);
            let from_body = check::whole(dialect, &body(&whole));
            if dialect == Dialect::Chat && !with_usage {
                prop_assert_eq!(from_stream.usage.take(), None);
                from_stream.usage.clone_from(&from_body.usage);
            }
            prop_assert_eq!(&from_stream, &from_body);
            usages.push(counted(dialect, &body(&whole)));
            let seen = tapped(dialect, &streamed(&answer));
            let calls = herma_dialect::read_response(dialect, body(&whole).to_string().as_bytes()).unwrap().tool_calls;
            prop_assert_eq!((calls, seen.tool_calls), (from_body.calls.len() as u64, from_body.calls.len() as u64));
            prop_assert!(seen.done && !seen.malformed && !seen.error_event && seen.unparsed == 0, "{seen:?}");
            if dialect != Dialect::Chat || with_usage {
                let usage = seen.usage.map(|usage| Usage { reasoning: 0, ..usage });
                prop_assert_eq!(usage, usages.last().copied());
            }
        }
        // Where a client has other tools, other calls are made, and count differently.
        if client != 2 {
            prop_assert!(usages.iter().all(|usage| *usage == usages[0]), "{usages:?}");
        }
    }

    #[test]
    fn no_text_is_a_script_that_panics(text in "[a-z:{}\\[\\]\\-\n \"0-9]{0,200}") {
        let _ = herma_scripted::Scripted::parse(text.as_bytes());
        let _ = herma_scripted::Scripted::parse(format!("name: a\nturns:\n  - {text}").as_bytes());
    }
}
