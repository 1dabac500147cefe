//! The request to each provider, byte for byte.

use herma_dialect::endpoint::{ENDPOINTS, Endpoint};
use herma_router::upstream::Upstream;
use http::{HeaderMap, HeaderName};

use super::kit::{FINE, Got, answering, asking, body, http, up, up_with};

/// Headers that a client sends, with some that must not get through whoever let them pass.
fn clients() -> HeaderMap {
    let headers = [
        ("accept", "application/json"),
        ("authorization", "Bearer the-token-of-the-run"),
        ("x-api-key", "the-token-of-the-run"),
        ("proxy-authorization", "Basic the-token-of-the-run"),
        ("cookie", "the-token-of-the-run"),
        ("host", "elsewhere.example"),
        ("content-length", "9999"),
        ("transfer-encoding", "chunked"),
        ("content-type", "text/plain"),
        ("accept-encoding", "gzip"),
        ("user-agent", "client/1"),
    ];
    let parsed = |(name, value): (&str, &str)| (HeaderName::try_from(name).unwrap(), value.parse().unwrap());
    headers.into_iter().map(parsed).collect()
}

/// Sends the same to every endpoint, and shows what came.
async fn sent(upstream: &Upstream, got: &Got, address: impl ToString) -> String {
    for (endpoint, _) in ENDPOINTS.iter().filter(|(endpoint, _)| upstream.answers(*endpoint)) {
        let mut outgoing = asking(*endpoint);
        outgoing.headers = clients();
        body(upstream.send(outgoing).await.unwrap()).await.unwrap();
    }
    shown(got, &address.to_string())
}

fn shown(got: &Got, address: &str) -> String {
    let all = got.lock().unwrap().join("\n\n");
    assert!(!all.contains("the-token-of-the-run"), "{all}");
    all.replace('\r', "").replace(address, "[address]").replace(herma_core::VERSION, "[version]")
}

#[tokio::test]
async fn openai_is_sent_this() {
    let (address, got) = answering(FINE).await;
    insta::assert_snapshot!(sent(&up("openai", &http(address)), &got, address).await);
}

#[tokio::test]
async fn anthropic_is_sent_this() {
    let (address, got) = answering(FINE).await;
    insta::assert_snapshot!(sent(&up("anthropic", &http(address)), &got, address).await);
}

#[tokio::test]
async fn a_compatible_server_is_sent_this() {
    let (address, got) = answering(FINE).await;
    insta::assert_snapshot!(
        sent(&up("compatible", &format!("{}/api/v1/", http(address))), &got, address).await
    );
}

#[tokio::test]
async fn a_server_without_a_key_is_sent_none() {
    let (address, got) = answering(FINE).await;
    let lines = "provider = \"compatible\"\nurl = { env = \"URL\" }";
    let upstream = super::kit::configured(lines, &http(address), super::kit::SHORT).unwrap();
    sent(&upstream, &got, address).await;
    for request in got.lock().unwrap().iter() {
        let request = request.to_ascii_lowercase();
        assert!(!request.contains("authorization") && !request.contains("x-api-key"), "{request}");
    }
}

#[tokio::test]
async fn the_version_and_the_beta_of_anthropic_are_the_clients() {
    let (address, got) = answering(FINE).await;
    let upstream = up("anthropic", &http(address));
    let mut outgoing = asking(Endpoint::Messages);
    outgoing.beta_query = true;
    for (name, value) in [("anthropic-version", "2099-01-01"), ("anthropic-beta", "something-new")] {
        outgoing.headers.append(HeaderName::try_from(name).unwrap(), value.parse().unwrap());
    }
    body(upstream.send(outgoing).await.unwrap()).await.unwrap();
    insta::assert_snapshot!(shown(&got, &address.to_string()));
}

#[tokio::test]
async fn a_redirect_is_an_answer_and_not_followed() {
    let (elsewhere, there) = answering(FINE).await;
    let redirect = format!("HTTP/1.1 307 Go\r\nlocation: http://{elsewhere}/\r\ncontent-length: 0\r\n\r\n");
    let (address, got) = answering(redirect.leak()).await;
    let response = up("openai", &http(address)).send(asking(Endpoint::Chat)).await.unwrap();
    assert_eq!(response.status(), 307);
    assert_eq!((got.lock().unwrap().len(), there.lock().unwrap().len()), (1, 0));
}

#[tokio::test]
async fn a_version_in_the_url_is_not_said_twice() {
    let (address, got) = answering(FINE).await;
    for (path, line) in [
        ("", "POST /v1/chat/completions HTTP/1.1"),
        ("/v1", "POST /v1/chat/completions HTTP/1.1"),
        ("/openai", "POST /openai/v1/chat/completions HTTP/1.1"),
        ("/v1beta/openai", "POST /v1beta/openai/chat/completions HTTP/1.1"),
    ] {
        let upstream = up_with("compatible", &format!("{}{path}", http(address)), "http = \"1.1\"");
        body(upstream.send(asking(Endpoint::Chat)).await.unwrap()).await.unwrap();
        assert!(got.lock().unwrap().pop().unwrap().starts_with(line), "{path}");
    }
}
