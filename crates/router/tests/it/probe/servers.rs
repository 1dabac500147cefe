//! Shapes that scripts do not have: what servers were seen to send.

use std::io::Write as _;

use herma_core::secret::Secret;
use herma_dialect::endpoint::Endpoint;
use herma_router::probe::{Capabilities, LeftOut, Support, probe};

use super::kit::{BUDGET, GOOD, Routed, answer, of_server, server};

/// The capabilities of a server that answers the small question with this body.
fn whole(endpoint: Endpoint, body: &'static str) -> Capabilities {
    of_server(endpoint, move |_, stream| answer(stream, "application/json", body.as_bytes())).unwrap()
}

#[test]
fn reasoning_has_many_names_in_chat() {
    let rows = [
        (r#"{"content":null,"reasoning":"hm"}"#, true),
        (r#"{"content":"","reasoning_text":"hm"}"#, true),
        (r#"{"content":"","thinking":"hm"}"#, true),
        (r#"{"content":null,"reasoning_details":[{"type":"reasoning.encrypted","data":"x"}]}"#, true),
        (r#"{"content":[{"type":"thinking","thinking":[{"type":"text","text":"hm"}]}]}"#, true),
        (r#"{"content":"so much to think of</think>\n\n"}"#, true),
        (r#"{"content":[{"type":"thinking","thinking":[]},{"type":"text","text":"ready"}]}"#, false),
        (r#"{"content":"<think>hm</think>ready"}"#, false),
        (r#"{"content":"hm</think>ready"}"#, false),
        (r#"{"content":"ready","reasoning":null,"reasoning_details":[]}"#, false),
    ];
    for (message, reasoning_only) in rows {
        let body = format!(r#"{{"choices":[{{"message":{message},"finish_reason":"stop"}}]}}"#).leak();
        let found = whole(Endpoint::Chat, body);
        assert_eq!(found.reasoning_only, reasoning_only, "{message}");
        assert_eq!(found.content.is_yes(), !reasoning_only, "{message}");
    }
}

#[test]
fn items_and_blocks_of_reasoning_only() {
    let responses = r#"{"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"},
        "output":[{"type":"reasoning","summary":[],"encrypted_content":"x"}]}"#;
    assert!(whole(Endpoint::Responses, responses).reasoning_only);
    let messages = r#"{"type":"message","content":[{"type":"redacted_thinking","data":"x"}],
        "stop_reason":"max_tokens"}"#;
    assert!(whole(Endpoint::Messages, messages).reasoning_only);
}

#[test]
fn a_call_of_a_tool_that_was_never_given_is_no_content() {
    let rows = [
        (
            Endpoint::Chat,
            r#"{"choices":[{"message":{"reasoning":"hm","tool_calls":[{"function":{"name":"x"}}]}}]}"#,
        ),
        (Endpoint::Responses, r#"{"output":[{"type":"reasoning"},{"type":"function_call","name":"x"}]}"#),
        (Endpoint::Messages, r#"{"content":[{"type":"thinking"},{"type":"tool_use","name":"x"}]}"#),
    ];
    for (endpoint, body) in rows {
        let found = whole(endpoint, body);
        assert!(!found.content.is_yes() && !found.reasoning_only, "{endpoint:?}: {found:?}");
    }
}

#[test]
fn a_body_that_is_no_answer_is_none_with_any_status() {
    let bodies = [
        "",
        "null",
        "[]",
        "{}",
        "<html>",
        r#"{"choices":7}"#,
        r#"{"error":{"message":"The model is gone."}}"#,
    ];
    for endpoint in [Endpoint::Chat, Endpoint::Responses, Endpoint::Messages] {
        for body in bodies {
            let failed =
                of_server(endpoint, move |_, stream| answer(stream, "application/json", body.as_bytes()))
                    .unwrap_err();
            let told = failed.to_string();
            assert!(told.contains("not one of this API") || told.contains("The model is gone."), "{told}");
        }
    }
}

#[test]
fn arguments_that_are_no_text_are_none_in_chat() {
    let found = of_server(Endpoint::Chat, |request, stream| {
        let body = if request.contains("tool_choice") {
            r#"{"choices":[{"message":{"tool_calls":[{"function":{"name":"run_command","arguments":{"command":"x"}}}]}}]}"#
        } else {
            r#"{"choices":[{"message":{"content":"ready"}}]}"#
        };
        answer(stream, "application/json", body.as_bytes());
    });
    let found = found.unwrap();
    assert_eq!(found.tool_calls, Support::No("chat: the arguments of the tool call are not JSON".to_owned()));
    let whole = "chat: the answer came whole, not as a stream";
    assert_eq!(found.streaming, Support::No(whole.to_owned()));
}

#[test]
fn an_api_that_is_not_there_is_left_out_and_the_others_count() {
    let routed = server(|request, stream| {
        if request.starts_with("POST /v1/messages ") {
            let body = br#"{"type":"message","content":[{"type":"text","text":"ready"}]}"#;
            answer(stream, "application/json", body);
        } else {
            let head = "HTTP/1.1 404 Not Found\r\nx-herma-upstream: up/m\r\ncontent-length: 0\r\n\r\n";
            stream.write_all(head.as_bytes()).unwrap();
        }
    });
    let endpoints = [Endpoint::Chat, Endpoint::Responses, Endpoint::Messages];
    let found = probe(&routed, &Secret::new("token".to_owned()), "m", &endpoints, BUDGET).unwrap();
    assert_eq!((&found.content, &*found.endpoints), (&Support::Yes, &[Endpoint::Messages][..]));
    let left_out = [Endpoint::Chat, Endpoint::Responses]
        .map(|endpoint| LeftOut { endpoint, why: "status 404".to_owned() });
    assert_eq!(found.left_out, left_out);
}

#[test]
fn an_answer_without_end_is_cut() {
    for kind in ["application/json", "text/event-stream"] {
        let failed = of_server(Endpoint::Chat, move |_, stream| {
            let _ = write!(stream, "HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\n\r\n");
            while stream.write_all(&[b' '; 4096]).is_ok() {}
        });
        assert!(failed.unwrap_err().to_string().contains("larger than any"));
    }
}

#[test]
fn messages_of_a_server_are_escaped() {
    let failed = of_server(Endpoint::Chat, |_, stream| {
        let body = format!(r#"{{"error":{{"message":"\u001b[31m\u202e{}"}}}}"#, "x".repeat(10_000));
        let head = format!("HTTP/1.1 503 No\r\ncontent-length: {}\r\n\r\n", body.len());
        let _ = stream.write_all(&[head.as_bytes(), body.as_bytes()].concat());
    });
    let told = failed.unwrap_err().to_string();
    assert!(!told.contains(['\u{1b}', '\u{202e}']) && told.len() < 400, "{told}");
}

#[test]
fn capabilities_survive_a_round_trip() {
    let found = Routed::new(GOOD).probe(&[Endpoint::Chat]).unwrap();
    let text = serde_json::to_string(&found).unwrap();
    assert_eq!(serde_json::from_str::<Capabilities>(&text).unwrap(), found);
    let spelled = [Support::Yes, Support::No("why".to_owned()), Support::NotAsked];
    assert_eq!(serde_json::to_string(&spelled).unwrap(), r#"["yes",{"no":"why"},"not_asked"]"#);
}

#[test]
fn it_can_be_called_inside_a_runtime() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let routed = Routed::new(GOOD);
    assert_eq!(runtime.block_on(async { routed.probe(&[Endpoint::Chat]) }).unwrap().blocker(), None);
}
