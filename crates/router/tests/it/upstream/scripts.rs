//! The upstream that is in the process: scripts in their time, and everything else that clients ask.

use std::fs;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use herma_dialect::endpoint::{ENDPOINTS, Endpoint, dialect_of};
use herma_dialect::{Dialect, read_response};
use herma_router::upstream::{Ambiguous, BodyBroken, Outgoing, SendError, Upstream};
use http_body::Body;
use http_body_util::BodyExt;
use serde_json::{Value, json};

use super::kit::{asking, body, configured};

fn scripted(scripts: &[&str]) -> Upstream {
    try_scripted(scripts).unwrap_or_else(|bad| panic!("{bad}"))
}

fn try_scripted(scripts: &[&str]) -> Result<Upstream, String> {
    let dir = tempfile::tempdir().unwrap();
    let paths: Vec<String> = (0..scripts.len())
        .map(|number| {
            let path = dir.path().join(format!("{number}.yaml"));
            fs::write(&path, scripts[number]).unwrap();
            path.to_str().unwrap().to_owned()
        })
        .collect();
    let lines = format!("provider = \"scripted\"\nscripts = {paths:?}");
    configured(&lines, "", "first_byte = \"1s\"\nidle = \"300ms\"")
        .map_err(|bad| bad.to_string().replace(dir.path().to_str().unwrap(), "[dir]"))
}

fn saying(endpoint: Endpoint, body: &Value) -> Outgoing {
    Outgoing { body: Bytes::from(body.to_string()), ..asking(endpoint) }
}

fn turn(turn: &str) -> Upstream {
    scripted(&[&format!("name: one\nturns:\n  - {turn}\n")])
}

/// A request for a stream in each dialect.
fn streaming(endpoint: Endpoint) -> Outgoing {
    let turns = json!([{ "role": "user", "content": "Hello." }]);
    let key = if endpoint == Endpoint::Responses { "input" } else { "messages" };
    saying(endpoint, &json!({ "model": "m", "stream": true, key: turns }))
}

const DIALECTS: [Endpoint; 3] = [Endpoint::Chat, Endpoint::Responses, Endpoint::Messages];

#[tokio::test]
async fn a_script_answers_in_every_dialect() {
    let upstream = turn("say: Hello back.");
    assert_eq!((upstream.provider(), upstream.models()), ("scripted", vec!["scripted"]));
    for endpoint in DIALECTS {
        let response = upstream.send(streaming(endpoint)).await.unwrap();
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["content-type"], "text/event-stream; charset=utf-8");
        let text = String::from_utf8(body(response).await.unwrap()).unwrap();
        assert!(text.contains("Hello back."), "{text}");

        let mut whole = serde_json::from_slice::<Value>(&streaming(endpoint).body).unwrap();
        whole["stream"] = json!(false);
        let response = upstream.send(saying(endpoint, &whole)).await.unwrap();
        assert_eq!(response.headers()["content-type"], "application/json");
        let length = response.body().size_hint().exact().unwrap();
        let whole = body(response).await.unwrap();
        assert_eq!(whole.len() as u64, length);
        assert!(read_response(dialect_of(endpoint), &whole).unwrap().usage.is_some());
    }
}

#[tokio::test]
async fn a_request_that_no_script_matches_is_not_found_in_its_dialect() {
    let upstream = scripted(&["name: other\nmatch: { run: another-run }\nturns: [{ say: No. }]\n"]);
    let mut said = Vec::new();
    for endpoint in DIALECTS {
        let response = upstream.send(streaming(endpoint)).await.unwrap();
        assert_eq!(response.status(), 404);
        said.push(String::from_utf8(body(response).await.unwrap()).unwrap());
    }
    insta::assert_snapshot!(said.join("\n"));
    let mut of_the_run = streaming(Endpoint::Chat);
    of_the_run.run = Arc::from("another-run");
    assert_eq!(upstream.send(of_the_run).await.unwrap().status(), 200);
}

#[tokio::test]
async fn invalid_requests_are_refused_at_every_endpoint() {
    let upstream = turn("say: Hello.");
    for (endpoint, _) in ENDPOINTS {
        for bad in ["", "[]", "{}", "{\"model\":1}", "\u{0}"] {
            let response = upstream.send(Outgoing { body: bad.into(), ..asking(*endpoint) }).await.unwrap();
            assert_eq!(response.status(), 400, "{endpoint:?} {bad}");
            let error: Value = serde_json::from_slice(&body(response).await.unwrap()).unwrap();
            assert!(error["error"]["message"].is_string());
            assert_eq!(error.get("type").is_some(), dialect_of(*endpoint) == Dialect::Messages);
        }
    }
}

#[tokio::test]
async fn time_passes_before_the_head_and_between_chunks() {
    let upstream = turn("{ say: abcdef, chunk: 3, delay: { first_byte: 200ms, between: 40ms } }");
    let began = Instant::now();
    let response = upstream.send(streaming(Endpoint::Chat)).await.unwrap();
    assert!(began.elapsed() >= Duration::from_millis(200));
    let head = began.elapsed();
    let mut left = response.into_body();
    let first = tokio::time::timeout(Duration::ZERO, left.frame()).await;
    first.expect("the first chunk is there with the head").unwrap().unwrap();
    let mut chunks = 1;
    while let Some(frame) = left.frame().await {
        frame.unwrap();
        chunks += 1;
    }
    assert!(chunks >= 4 && began.elapsed() >= head + Duration::from_millis(40) * (chunks - 1));
}

#[tokio::test]
async fn limits_hold_for_scripts_too() {
    let late = turn("{ say: Hello., delay: { first_byte: 1h, between: 0s } }");
    assert_eq!(
        late.send(streaming(Endpoint::Chat)).await.unwrap_err(),
        SendError::Ambiguous(Ambiguous::FirstByteTimeout)
    );
    for slow in [
        "{ say: Hello., forever: silence }",
        "{ say: abcdef, chunk: 3, delay: { first_byte: 0s, between: 1h } }",
    ] {
        let response = turn(slow).send(streaming(Endpoint::Chat)).await.unwrap();
        let (before, broken) = body(response).await.unwrap_err();
        assert_eq!(broken, BodyBroken::Idle);
        assert!(!before.is_empty());
    }
}

#[tokio::test]
async fn an_endless_stream_continues_until_it_is_dropped() {
    let response = turn("{ say: Hello., forever: text, delay: { first_byte: 0s, between: 1ms } }")
        .send(streaming(Endpoint::Messages))
        .await
        .unwrap();
    let mut left = response.into_body();
    for _ in 0..200 {
        left.frame().await.unwrap().unwrap();
        assert!(!left.is_end_stream());
    }
}

#[tokio::test]
async fn cuts_and_errors_come_as_the_script_says() {
    let response =
        turn("{ say: Hello., cut: { after_bytes: 20 } }").send(streaming(Endpoint::Chat)).await.unwrap();
    let (before, broken) = body(response).await.unwrap_err();
    assert_eq!((before.len(), broken), (20, BodyBroken::Cut));
    let upstream = turn("{ say: Hello., error: { status: 529, retry_after: 1500ms }, times: 2 }");
    for attempt in 0..4 {
        let response = upstream.send(streaming(Endpoint::Chat)).await.unwrap();
        let status = if attempt < 2 { 529 } else { 200 };
        assert_eq!(response.status(), status, "attempt {attempt}");
        if attempt < 2 {
            let wait = herma_router::upstream::retry_after(response.headers());
            assert_eq!(wait, Some(Duration::from_millis(1500)));
        }
    }
}

#[tokio::test]
async fn endpoints_without_scripts_have_fixed_answers() {
    let upstream = turn("say: Hello.");
    let ask = async |endpoint, request: Value| {
        let response = upstream.send(saying(endpoint, &request)).await.unwrap();
        assert_eq!(response.status(), 200);
        String::from_utf8(body(response).await.unwrap()).unwrap()
    };
    let requests = [
        (
            Endpoint::CountTokens,
            json!({ "model": "m", "messages": [{ "role": "user", "content": "12345678" }] }),
        ),
        (Endpoint::Completions, json!({ "model": "m", "prompt": "Once upon" })),
        (Endpoint::Completions, json!({ "model": "m", "prompt": "Once upon", "stream": true })),
        (
            Endpoint::Completions,
            json!({ "model": "m", "prompt": "a", "stream": true, "stream_options": { "include_usage": true } }),
        ),
        (Endpoint::Embeddings, json!({ "model": "m", "input": "a" })),
        (Endpoint::Embeddings, json!({ "model": "m", "input": ["a", "b"], "encoding_format": "base64" })),
        (Endpoint::Embeddings, json!({ "model": "m", "input": [1, 2, 3] })),
    ];
    let mut said = Vec::new();
    for (endpoint, request) in requests {
        let first = ask(endpoint, request.clone()).await;
        assert_eq!(first, ask(endpoint, request.clone()).await);
        said.push(format!("{endpoint:?} {request}\n{}\n", first.trim_end()));
    }
    insta::assert_snapshot!(said.join("\n"));
}

#[test]
fn scripts_that_cannot_be_used_are_said_at_start() {
    let said = [
        try_scripted(&["name: one\nturns: [{ sya: Hello. }]\n"]),
        try_scripted(&["name: one\nturns: [{ say: A. }]\n", "name: one\nturns: [{ say: B. }]\n"]),
        configured("provider = \"scripted\"\nscripts = [\"/nowhere/a.yaml\"]", "", "")
            .map_err(|bad| bad.to_string()),
    ];
    let said: Vec<String> = said.into_iter().map(Result::unwrap_err).collect();
    insta::assert_snapshot!(said.join("\n"));
}
