//! The step `ask`: the request to the router, the result of each response, and a missing response.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::thread;

use herma_core::secret::Secret;
use herma_engines::fake::{Router, Script, Speaker, perform};
use serde_json::{Value, json};

use crate::place::ScriptDir;

const TOKEN: &str = "token-of-this-run-only";

/// A request as the router got it.
struct Got {
    head: String,
    body: Value,
}

/// Plays the script while one response waits at a socket; returns the exit code, the output, and the request.
fn ask(script: &str, answer: &str) -> (u8, String, Got) {
    let place = ScriptDir::empty();
    ask_at(&place, &place.path("router.sock"), script, answer)
}

fn ask_at(place: &ScriptDir, socket: &Path, script: &str, answer: &str) -> (u8, String, Got) {
    let listener = UnixListener::bind(place.path("router.sock")).unwrap();
    let (log, script) = (place.path("log"), Script::parse(script.as_bytes()).unwrap());
    let router = router(socket.to_owned());
    thread::scope(|scope| {
        let got = scope.spawn(move || answer_once(&listener, answer));
        let speaker = Speaker { router: Some(&router), ..Speaker::FAKE };
        let code = perform(&script, speaker, &place.workspace, fs::File::create(&log).unwrap());
        (code, fs::read_to_string(&log).unwrap(), got.join().unwrap())
    })
}

fn router(socket: PathBuf) -> Router {
    Router { socket, token: Secret::new(TOKEN.to_owned()), model: "contracts-model".to_owned() }
}

fn answer_once(listener: &UnixListener, answer: &str) -> Got {
    let (stream, _) = listener.accept().unwrap();
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        reader.read_line(&mut head).unwrap();
    }
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok()).unwrap();
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    reader.into_inner().write_all(answer.as_bytes()).unwrap();
    Got { head, body: serde_json::from_slice(&body).unwrap() }
}

fn ok(body: &str) -> String {
    format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len())
}

#[test]
fn each_dialect_uses_its_endpoint_and_its_text_is_reported() {
    let cases = [
        (
            "chat",
            "/v1/chat/completions",
            json!({ "choices": [{ "message": { "content": "hello you" } }] }),
            json!({ "model": "contracts-model", "stream": false, "messages": [{ "role": "user", "content": "hi" }] }),
        ),
        (
            "responses",
            "/v1/responses",
            json!({ "output": [{ "type": "reasoning" }, { "content": [{ "text": "hello " }, { "text": "you" }] }] }),
            json!({ "model": "contracts-model", "stream": false, "input": "hi", "store": false }),
        ),
        (
            "messages",
            "/v1/messages",
            json!({ "content": [{ "type": "text", "text": "hello you" }] }),
            json!({ "model": "contracts-model", "stream": false, "max_tokens": 1024,
                    "messages": [{ "role": "user", "content": "hi" }] }),
        ),
    ];
    for (dialect, path, answer, body) in cases {
        let script = format!("steps: [{{ ask: {{ prompt: hi, dialect: {dialect} }} }}]");
        let (code, said, got) = ask(&script, &ok(&answer.to_string()));
        assert_eq!(code, 0, "{said}");
        assert!(said.contains("the model answered with 200: hello you\""), "{dialect}: {said}");
        assert!(got.head.starts_with(&format!("POST {path} HTTP/1.1\r\n")), "{}", got.head);
        assert!(got.head.contains(&format!("authorization: Bearer {TOKEN}\r\n")));
        assert_eq!(got.body, body);
        assert!(!said.contains(TOKEN));
    }
}

#[test]
fn a_stream_is_read_to_its_end_and_its_pieces_are_one_text() {
    let cases = [
        ("chat", json!({ "choices": [{ "delta": { "content": "ab" } }] })),
        ("responses", json!({ "type": "response.output_text.delta", "delta": "ab" })),
        ("messages", json!({ "type": "content_block_delta", "delta": { "text": "ab" } })),
    ];
    for (dialect, event) in cases {
        let event = format!("data: {event}\n\n");
        let chunk = format!("{:x}\r\n{event}\r\n", event.len());
        let answer = format!(
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n{chunk}{chunk}e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n"
        );
        let script = format!("steps: [{{ ask: {{ prompt: hi, dialect: {dialect}, stream: true }} }}]");
        let (_, said, got) = ask(&script, &answer);
        assert!(said.contains("the model answered with 200: abab\""), "{dialect}: {said}");
        assert_eq!(got.body["stream"], true);
    }
}

#[test]
fn another_model_and_a_maximum_are_asked_for_as_the_script_says() {
    for (dialect, key) in
        [("chat", "max_completion_tokens"), ("responses", "max_output_tokens"), ("messages", "max_tokens")]
    {
        let script =
            format!("steps: [{{ ask: {{ prompt: hi, dialect: {dialect}, model: other, max_output: 7 }} }}]");
        let (_, _, got) = ask(&script, &ok("{}"));
        assert_eq!((&got.body["model"], &got.body[key]), (&json!("other"), &json!(7)), "{dialect}");
    }
}

#[test]
fn another_status_than_the_expected_one_is_a_failed_step() {
    let refused = "HTTP/1.1 403 Forbidden\r\n\r\n{\"error\":{\"message\":\"not this model\"}}";
    let (code, said, _) = ask("steps: [{ ask: { prompt: hi } }]", refused);
    assert_eq!(code, 0, "the script goes on: {said}");
    assert!(said.contains("`ask` failed: the router answered with 403, expected 200 to 299: not this model"));
    let (code, said, _) = ask("steps: [{ ask: { prompt: hi, expect: 403, must: true } }]", refused);
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("the model answered with 403: not this model"), "{said}");
    let (code, said, _) =
        ask("steps: [{ ask: { prompt: hi, expect: 200, must: true } }, { say: no }]", refused);
    assert_eq!(code, 1, "{said}");
    assert!(said.ends_with("{\"type\":\"result\",\"status\":\"failed\"}\n"), "{said}");
}

#[test]
fn a_missing_router_a_dead_socket_and_half_a_response_are_failed_steps() {
    let place = ScriptDir::empty();
    let played = place.play("steps: [{ ask: { prompt: hi } }]");
    let said = String::from_utf8(played.output).unwrap();
    assert!(said.contains("`ask` failed: there is no router: the contract names no model"), "{said}");

    let (log, nobody) = (place.path("log"), router(place.path("nobody.sock")));
    let script = Script::parse(b"steps: [{ ask: { prompt: hi, must: true } }]").unwrap();
    let speaker = Speaker { router: Some(&nobody), ..Speaker::FAKE };
    assert_eq!(perform(&script, speaker, &place.workspace, fs::File::create(&log).unwrap()), 1);
    assert!(fs::read_to_string(&log).unwrap().contains("`ask` failed: the router could not be asked: "));

    let (_, said, _) =
        ask("steps: [{ ask: { prompt: hi } }]", "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf");
    assert!(said.contains("`ask` failed: the answer breaks off"), "{said}");
}

#[test]
fn a_socket_with_a_long_path_is_reached_too() {
    let place = ScriptDir::empty();
    let long = place.path(&"d".repeat(120));
    std::os::unix::fs::symlink(place.path("."), &long).unwrap();
    let (_, said, _) =
        ask_at(&place, &long.join("router.sock"), "steps: [{ ask: { prompt: hi } }]", &ok("{}"));
    assert!(said.contains("the model answered with 200"), "{said}");
}
