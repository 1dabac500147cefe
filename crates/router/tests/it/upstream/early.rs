//! An answer that comes before all of the request was sent.

use bytes::Bytes;
use herma_dialect::endpoint::Endpoint;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::kit::{asking, body, closed, http, server, up};

/// More than what fits into the buffers between two processes.
const LARGE: usize = 16 << 20;

/// The result of a large request to a server that sends the first text after the beginning of the request, then reads that
/// much of the rest, and then sends the second text.
async fn asked(first: &'static str, reads: usize, then: &'static str) -> (u16, Vec<u8>) {
    let address = server(move |_, mut stream| async move {
        let mut part = vec![0; 1 << 16];
        let mut seen = stream.read(&mut part).await.unwrap();
        stream.write_all(first.as_bytes()).await.unwrap();
        while seen < reads {
            match stream.read(&mut part).await {
                Ok(more) if more > 0 => seen += more,
                _ => return,
            }
        }
        stream.write_all(then.as_bytes()).await.unwrap();
        closed(&mut stream).await;
    })
    .await;
    let mut outgoing = asking(Endpoint::Chat);
    outgoing.body = Bytes::from(vec![b' '; LARGE]);
    let response = up("openai", &http(address)).send(outgoing).await.unwrap();
    (response.status().as_u16(), body(response).await.unwrap())
}

#[tokio::test]
async fn a_refusal_is_heard() {
    let refusal = "HTTP/1.1 413 Too Large\r\ncontent-length: 2\r\n\r\nno";
    assert_eq!(asked(refusal, 0, "").await, (413, b"no".to_vec()));
}

#[tokio::test]
async fn a_server_that_continues_gets_the_rest() {
    let agreed = "HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\n";
    assert_eq!(asked(agreed, LARGE, "yes").await, (200, b"yes".to_vec()));
}

#[tokio::test]
async fn bytes_after_an_early_head_are_its_body() {
    let inner = "HTTP/1.1 500 No\r\ncontent-length: 0\r\n\r\n";
    let agreed =
        "HTTP/1.1 200 OK\r\ncontent-length: 40\r\n\r\nHTTP/1.1 500 No\r\ncontent-length: 0\r\n\r\n..";
    assert_eq!(inner.len() + 2, 40);
    assert_eq!(asked(agreed, LARGE, "").await, (200, format!("{inner}..").into_bytes()));
}
