//! The exact bytes for each dialect and situation, streamed and whole.

use serde_json::json;

use super::kit::{DIALECTS, Request, function, scripted, shown};

const SITUATIONS: &[(&str, &str)] = &[
    ("text", "- say: I will look at it, and at the grüße.\n"),
    ("reasoning", "- { think: Where does the dash come from?, say: From the end. }\n"),
    ("reasoning_only", "- think: Where does the dash come from?\n"),
    ("tool_call", "- { say: I run it., call: { shell: sh tests/slugify_test.sh } }\n"),
    (
        "parallel_calls",
        "- calls: [{ shell: ls }, { write: { path: a, text: \"b\\n\" } }, { tool: { name: ghost, text: '{' } }]\n",
    ),
    (
        "usage",
        "- { say: Counted., usage: { input: 1200, output: 80, cached: 200, cache_write: 100, reasoning: 30 } }\n",
    ),
    ("error", "- error: { status: 429, retry_after: 1500ms, message: Slow down. }\n"),
    ("late_error", "- { say: It begins well., error: { status: 503, late: true } }\n"),
    ("cut", "- { say: It begins well and then it stops., cut: { after_events: 4 } }\n"),
    ("malformed", "- { say: It begins well and goes on., malformed: true }\n"),
    ("forever", "- { say: It begins., forever: text, delay: { first_byte: 1s, between: 20ms } }\n"),
    ("empty", "- empty: true\n"),
    ("refusal", "- refuse: I will not do that.\n"),
    ("length", "- { say: There was more to, stop: length }\n"),
    ("content_filter", "- { say: There was more to, stop: content_filter }\n"),
];

#[test]
fn every_situation_in_every_dialect() {
    for (situation, turn) in SITUATIONS {
        let script = scripted(&format!("name: golden\nturns:\n  {turn}"));
        for dialect in DIALECTS {
            let tools = vec![function("bash", &["command"]), function("write", &["path", "content"])];
            let request = Request::new(dialect).tools(tools, vec![]);
            let stream = shown(&request.answer(&script));
            let whole = shown(&request.whole().answer(&script));
            let both = format!("STREAMED\n{stream}\nWHOLE\n{whole}");
            insta::assert_snapshot!(format!("{dialect}_{situation}"), both, turn);
        }
    }
}

#[test]
fn usage_is_in_a_chat_stream_where_it_was_asked_for() {
    let script = scripted("name: golden\nturns:\n  - say: Hello.\n");
    let request = Request::new(DIALECTS[0]).with(json!({ "stream_options": { "include_usage": true } }));
    insta::assert_snapshot!(shown(&request.answer(&script)));
}
