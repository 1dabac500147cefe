//! The request was certainly not sent, or possibly sent.

use std::time::{Duration, Instant};

use herma_dialect::endpoint::Endpoint;
use herma_router::upstream::{Ambiguous, NotReached, SendError};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;

use super::kit::{LONG, answering, ask, asking, closed, configured, http, request, server, up};

#[tokio::test]
async fn a_refused_port_is_not_reached() {
    let address = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let error = ask(&up("openai", &http(address)), Endpoint::Chat).await.unwrap_err();
    assert_eq!(error, SendError::NotReached(NotReached::ConnectionRefused));
}

#[tokio::test]
async fn a_name_that_nobody_has_is_not_reached() {
    let error = ask(&up("openai", "https://no-such-host.invalid"), Endpoint::Chat).await.unwrap_err();
    // Where no resolver answers at all, time is up first.
    assert!(
        matches!(error, SendError::NotReached(NotReached::NameNotFound | NotReached::ConnectTimeout)),
        "{error:?}"
    );
}

#[tokio::test]
async fn a_handshake_that_does_not_come_to_an_end_is_not_reached() {
    let silent = server(|_, mut stream| async move { closed(&mut stream).await }).await;
    let lines = "provider = \"openai\"\nkey = { env = \"KEY\" }\nurl = { env = \"URL\" }";
    let upstream = configured(lines, &format!("https://{silent}"), "connect = \"200ms\"").unwrap();
    let began = Instant::now();
    assert_eq!(ask(&upstream, Endpoint::Chat).await, Err(SendError::NotReached(NotReached::ConnectTimeout)));
    assert!(began.elapsed() < Duration::from_secs(5));
}

#[tokio::test]
async fn a_server_that_accepts_and_closes_may_have_got_the_request() {
    let address = server(|_, stream| async move { drop(stream) }).await;
    let error = ask(&up("openai", &http(address)), Endpoint::Chat).await.unwrap_err();
    assert_eq!(error, SendError::Ambiguous(Ambiguous::ClosedBeforeHeaders));
}

#[tokio::test]
async fn a_server_that_reads_and_closes_may_have_charged() {
    for half in ["", "HTTP/1.1 200 OK\r\ncontent-"] {
        let address = server(move |_, mut stream| async move {
            request(&mut stream).await.unwrap();
            stream.write_all(half.as_bytes()).await.unwrap();
        })
        .await;
        let error = ask(&up("openai", &http(address)), Endpoint::Chat).await.unwrap_err();
        assert_eq!(error, SendError::Ambiguous(Ambiguous::ClosedBeforeHeaders));
    }
}

#[tokio::test]
async fn a_response_that_is_not_http_is_no_answer() {
    let (address, got) = answering("SSH-2.0-OpenSSH_9.9\r\n\r\n\r\n").await;
    let error = ask(&up("openai", &http(address)), Endpoint::Chat).await.unwrap_err();
    assert_eq!(error, SendError::Ambiguous(Ambiguous::NotHttp));
    assert_eq!(got.lock().unwrap().len(), 1, "it is not sent again");
}

#[tokio::test]
async fn an_answer_that_does_not_begin_is_given_up_and_the_upstream_told() {
    let (tell, mut told) = tokio::sync::mpsc::channel(1);
    let address = server(move |_, mut stream| {
        let tell = tell.clone();
        async move {
            request(&mut stream).await.unwrap();
            closed(&mut stream).await;
            tell.send(()).await.unwrap();
        }
    })
    .await;
    let lines = "provider = \"openai\"\nkey = { env = \"KEY\" }\nurl = { env = \"URL\" }";
    let upstream = configured(lines, &http(address), "first_byte = \"200ms\"").unwrap();
    assert_eq!(ask(&upstream, Endpoint::Chat).await, Err(SendError::Ambiguous(Ambiguous::FirstByteTimeout)));
    tokio::time::timeout(LONG, told.recv()).await.expect("the connection is closed").unwrap();
}

#[tokio::test]
async fn an_unsupported_endpoint_is_not_called() {
    let (address, got) = answering(super::kit::FINE).await;
    let error = up("openai", &http(address)).send(asking(Endpoint::Messages)).await.unwrap_err();
    assert_eq!(error, SendError::NotReached(NotReached::UnsupportedEndpoint));
    assert!(got.lock().unwrap().is_empty());
}
