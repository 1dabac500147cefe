//! Whole bodies, by golden files.

use herma_dialect::{Dialect, ResponseSummary, UnreadableResponse, Usage, read_response};

use crate::kit::{DIALECTS, all_golden, golden};

fn told(model: &str, stop: &str, usage: Usage) -> ResponseSummary {
    let (model, stop, usage) = (Some(model.into()), Some(stop.into()), Some(usage));
    ResponseSummary { model, stop, usage, ..ResponseSummary::default() }
}

#[test]
fn every_golden_body_is_read() {
    let open_ai = Usage { input: 1212, output: 87, cached_input: 1024, reasoning: 64, ..Usage::default() };
    let responses = Usage { input: 328, output: 52, cached_input: 256, reasoning: 40, ..Usage::default() };
    let cached = Usage {
        input: 17_003,
        output: 1,
        cached_input: 15_000,
        cache_write: 2_000,
        cache_write_long: 1_500,
        reasoning: 0,
    };
    let plain = |input, output| Usage { input, output, ..Usage::default() };
    let error = ResponseSummary { error: true, ..ResponseSummary::default() };
    let failed =
        ResponseSummary { stop: Some("failed".into()), model: Some("gpt-5-codex".into()), ..error.clone() };
    let embedded = ResponseSummary { stop: None, ..told("text-embedding-3-small", "", plain(8, 0)) };
    let calling = |calls, answered| ResponseSummary { tool_calls: calls, ..answered };
    let rows = [
        (Dialect::Chat, "chat/completion.json", told("davinci-002", "length", plain(5, 7))),
        (Dialect::Chat, "chat/embeddings.json", embedded),
        (Dialect::Chat, "chat/error.json", error.clone()),
        (Dialect::Chat, "chat/groq.json", told("llama-3.3-70b-versatile", "stop", plain(18, 4))),
        (
            Dialect::Chat,
            "chat/openai-tool-calls.json",
            calling(2, told("gpt-5-mini-2025-08-07", "tool_calls", open_ai)),
        ),
        (Dialect::Chat, "chat/openai.json", told("gpt-5-mini-2025-08-07", "stop", open_ai)),
        (Dialect::Responses, "responses/completed.json", told("gpt-5-codex", "completed", responses)),
        (Dialect::Responses, "responses/failed.json", failed),
        (Dialect::Responses, "responses/incomplete.json", told("gpt-5-codex", "content_filter", responses)),
        (
            Dialect::Responses,
            "responses/tool-calls.json",
            calling(4, told("gpt-5-codex", "completed", responses)),
        ),
        (Dialect::Messages, "messages/cache.json", told("claude-opus-4-1", "end_turn", cached)),
        (Dialect::Messages, "messages/error.json", error),
        (
            Dialect::Messages,
            "messages/text.json",
            told("claude-sonnet-4-5-20250929", "max_tokens", plain(12, 6)),
        ),
        (
            Dialect::Messages,
            "messages/tool-use.json",
            calling(2, told("claude-sonnet-4-5-20250929", "tool_use", plain(472, 89))),
        ),
    ];
    for (dialect, file, expected) in &rows {
        assert_eq!(read_response(*dialect, &golden(file)).as_ref(), Ok(expected), "{file}");
    }
    let known: Vec<&str> = rows.iter().map(|(_, file, _)| *file).collect();
    let all: Vec<String> = DIALECTS.iter().flat_map(|dialect| all_golden(*dialect, ".json")).collect();
    assert_eq!(all, known, "every golden body has its row");
}

#[test]
fn half_a_usage_is_none() {
    for (dialect, usage) in [
        (Dialect::Chat, r#"{"prompt_tokens":5}"#),
        (Dialect::Chat, r#"{"completion_tokens":5}"#),
        (Dialect::Chat, r#"{"prompt_tokens":5,"completion_tokens":null}"#),
        (Dialect::Chat, "{}"),
        (Dialect::Responses, r#"{"output_tokens":5}"#),
        (Dialect::Messages, r#"{"input_tokens":5}"#),
        (Dialect::Messages, r#"{"output_tokens":5,"cache_read_input_tokens":7}"#),
        (Dialect::Chat, "null"),
    ] {
        let body = format!(r#"{{"usage":{usage}}}"#);
        assert_eq!(read_response(dialect, body.as_bytes()).unwrap().usage, None, "{body}");
    }
}

#[test]
fn counts_that_cannot_be_are_no_answer() {
    for usage in [
        r#"{"prompt_tokens":-1,"completion_tokens":1}"#,
        r#"{"prompt_tokens":1.5,"completion_tokens":1}"#,
        r#"{"prompt_tokens":"9","completion_tokens":1}"#,
        r#"{"prompt_tokens":1e400,"completion_tokens":1}"#,
        r#"{"prompt_tokens":1,"prompt_tokens":2,"completion_tokens":1}"#,
        r#"{"prompt_tokens":99999999999999999999,"completion_tokens":1}"#,
    ] {
        let body = format!(r#"{{"usage":{usage}}}"#);
        assert_eq!(read_response(Dialect::Chat, body.as_bytes()), Err(UnreadableResponse), "{body}");
    }
    for body in ["", "[]", "1", "{", "{}x", "\u{feff}{}"] {
        assert_eq!(read_response(Dialect::Chat, body.as_bytes()), Err(UnreadableResponse), "{body}");
    }
    assert_eq!(read_response(Dialect::Chat, b"{\"a\":\"\xff\"}"), Err(UnreadableResponse));
}

#[test]
fn parts_are_never_more_than_the_whole() {
    let body = br#"{"usage":{"prompt_tokens":10,"completion_tokens":2,
        "prompt_tokens_details":{"cached_tokens":50},"completion_tokens_details":{"reasoning_tokens":9}}}"#;
    let usage = read_response(Dialect::Chat, body).unwrap().usage.unwrap();
    assert_eq!((usage.cached_input, usage.reasoning), (10, 2));
    let most = format!(
        r#"{{"usage":{{"input_tokens":{0},"output_tokens":{0},"cache_read_input_tokens":{0}}}}}"#,
        u64::MAX
    );
    assert_eq!(read_response(Dialect::Messages, most.as_bytes()).unwrap().usage.unwrap().input, u64::MAX);
}

#[test]
fn reasoning_that_only_the_total_has_is_output() {
    let body = br#"{"usage":{"prompt_tokens":10,"completion_tokens":2,"total_tokens":30,
        "completion_tokens_details":{"reasoning_tokens":18}}}"#;
    let usage = read_response(Dialect::Chat, body).unwrap().usage.unwrap();
    assert_eq!((usage.output, usage.reasoning), (20, 18));
}
