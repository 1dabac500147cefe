//! An answer that began and does not come to its end.

use std::time::{Duration, Instant};

use herma_dialect::endpoint::Endpoint;
use herma_router::upstream::BodyBroken;
use http_body_util::BodyExt;
use tokio::io::AsyncWriteExt;

use super::kit::{LONG, asking, body, closed, http, request, server, up};

const CHUNKED: &str = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";

/// A server that writes this and then closes.
async fn cut_after(answer: &'static str) -> Result<Vec<u8>, (Vec<u8>, BodyBroken)> {
    let address = server(move |_, mut stream| async move {
        request(&mut stream).await.unwrap();
        stream.write_all(answer.as_bytes()).await.unwrap();
    })
    .await;
    body(up("openai", &http(address)).send(asking(Endpoint::Chat)).await.unwrap()).await
}

#[tokio::test]
async fn a_body_that_is_cut_is_told_from_one_that_ends() {
    let cut = |before: &[u8]| Err((before.to_vec(), BodyBroken::Cut));
    assert_eq!(cut_after("HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf").await, cut(b"half"));
    assert_eq!(cut_after("HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n").await, cut(b""));
    assert_eq!(
        cut_after("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\nhalf\r\n").await,
        cut(b"half")
    );
    assert_eq!(
        cut_after("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzzz\r\nhalf\r\n").await,
        cut(b"")
    );
    assert_eq!(
        cut_after("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\nfull\r\n0\r\n\r\n").await,
        Ok(b"full".to_vec())
    );
}

#[tokio::test]
async fn a_reset_after_the_headers_is_a_cut() {
    let address = server(|_, mut stream| async move {
        request(&mut stream).await.unwrap();
        stream.write_all(CHUNKED.as_bytes()).await.unwrap();
        tokio::time::sleep(Duration::from_millis(50)).await;
        stream.set_zero_linger().unwrap();
    })
    .await;
    let response = up("openai", &http(address)).send(asking(Endpoint::Chat)).await.unwrap();
    assert_eq!(body(response).await, Err((Vec::new(), BodyBroken::Cut)));
}

#[tokio::test]
async fn a_silence_between_chunks_ends_the_body() {
    let address = server(|_, mut stream| async move {
        request(&mut stream).await.unwrap();
        stream.write_all(CHUNKED.as_bytes()).await.unwrap();
        stream.write_all(b"1\r\na\r\n").await.unwrap();
        closed(&mut stream).await;
    })
    .await;
    let began = Instant::now();
    let response = up("openai", &http(address)).send(asking(Endpoint::Chat)).await.unwrap();
    assert_eq!(body(response).await, Err((b"a".to_vec(), BodyBroken::Idle)));
    assert!(began.elapsed() >= Duration::from_millis(300) && began.elapsed() < LONG);
}

#[tokio::test]
async fn a_stream_may_last_longer_than_any_silence_in_it() {
    let address = server(|_, mut stream| async move {
        request(&mut stream).await.unwrap();
        stream.write_all(CHUNKED.as_bytes()).await.unwrap();
        for _ in 0..12 {
            tokio::time::sleep(Duration::from_millis(60)).await;
            stream.write_all(b"1\r\na\r\n").await.unwrap();
        }
        stream.write_all(b"0\r\n\r\n").await.unwrap();
    })
    .await;
    let response = up("openai", &http(address)).send(asking(Endpoint::Chat)).await.unwrap();
    assert_eq!(body(response).await, Ok(b"aaaaaaaaaaaa".to_vec()));
}

#[tokio::test]
async fn a_client_that_reads_slowly_is_not_the_upstreams_silence() {
    let address = server(|_, mut stream| async move {
        request(&mut stream).await.unwrap();
        stream.write_all(CHUNKED.as_bytes()).await.unwrap();
        stream.write_all(b"1\r\na\r\n").await.unwrap();
        tokio::time::sleep(Duration::from_millis(800)).await;
        stream.write_all(b"1\r\nb\r\n0\r\n\r\n").await.unwrap();
    })
    .await;
    let response = up("openai", &http(address)).send(asking(Endpoint::Chat)).await.unwrap();
    let mut left = response.into_body();
    let first = left.frame().await.unwrap().unwrap();
    assert_eq!(first.into_data().unwrap(), "a");
    // Nobody waits meanwhile: what counts begins when somebody does.
    tokio::time::sleep(Duration::from_millis(650)).await;
    assert_eq!(left.frame().await.unwrap().unwrap().into_data().unwrap(), "b");
}
