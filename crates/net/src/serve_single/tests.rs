use http_body_util::{BodyExt as _, Full};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};
use tokio::task::JoinHandle;

use super::*;

const OPTIONS: SingleOptions = SingleOptions {
    head: HeadLimits { max_bytes: 1 << 10, max_headers: 20 },
    head_timeout: Duration::from_secs(30),
    write_timeout: Duration::from_secs(30),
};

type Served = JoinHandle<Option<(DuplexStream, BytesMut)>>;

/// A server that responds with the target and the body, and refuses the target `/refused`.
fn serve_echo(options: SingleOptions, refuses_pipelining: bool) -> (DuplexStream, Served) {
    let (client, accepted) = duplex(1 << 16);
    let interpret = |head: &RequestHead<'_>| match head.target {
        "/refused" => Err(BadHead::Header),
        target => Ok(target.to_owned()),
    };
    let served = tokio::spawn(async move {
        serve_single(accepted, options, interpret, move |received| async move {
            let text = match received {
                Ok(SingleRequest { head, body, pipelining }) => {
                    if refuses_pipelining {
                        pipelining.refuse();
                        // Longer than any test, unless bytes behind the request end it.
                        tokio::time::sleep(Duration::from_mins(10)).await;
                    }
                    let body = body.collect().await.map(http_body_util::Collected::to_bytes);
                    format!("{head} {}", String::from_utf8_lossy(&body.unwrap_or_default()))
                }
                Err(bad) => format!("refused: {bad}"),
            };
            Response::new(Full::new(Bytes::from(text)))
        })
        .await
    });
    (client, served)
}

/// Everything that a client gets for these bytes, and the bytes that were left unread.
async fn exchange(bytes: &[u8]) -> (String, Vec<u8>) {
    let (mut client, served) = serve_echo(OPTIONS, false);
    client.write_all(bytes).await.unwrap();
    let (stream, rest) = served.await.unwrap().unwrap();
    drop(stream);
    let mut text = String::new();
    client.read_to_string(&mut text).await.unwrap();
    (text, rest.to_vec())
}

#[tokio::test]
async fn one_request_gets_one_response_and_the_connection_ends() {
    let (text, rest) = exchange(b"POST /a HTTP/1.1\r\ncontent-length: 2\r\n\r\nhi").await;
    assert_eq!(text, "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 5\r\n\r\n/a hi");
    assert!(rest.is_empty());
}

#[tokio::test]
async fn a_refused_head_is_answered_by_the_handler() {
    for (head, reason) in [
        ("GET /refused HTTP/1.1\r\n\r\n", "not a name, a colon and a value"),
        ("GET /a HTTP/1.1\r\na: 1\r\n b\r\n\r\n", "folded over several lines"),
        ("GET /a HTTP/1.1\n\n", "does not end with CR LF"),
        ("POST /a HTTP/1.1\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nxx", "`content-length`"),
    ] {
        let (text, _) = exchange(head.as_bytes()).await;
        assert!(text.contains("refused: ") && text.contains(reason), "{text}");
        assert_eq!(text.matches("HTTP/1.1 ").count(), 1, "{text}");
    }
}

#[tokio::test]
async fn bytes_behind_the_request_are_left_for_a_tunnel() {
    let (text, rest) = exchange(b"CONNECT a:1 HTTP/1.1\r\n\r\nearly data").await;
    assert_eq!(text, "HTTP/1.1 200 OK\r\n\r\n");
    assert_eq!(rest, b"early data");
}

#[tokio::test]
async fn a_second_request_is_never_read() {
    let (text, rest) = exchange(b"GET /a HTTP/1.1\r\n\r\nGET /never HTTP/1.1\r\n\r\n").await;
    assert_eq!(text.matches("HTTP/1.1 ").count(), 1, "{text}");
    assert_eq!(rest, b"GET /never HTTP/1.1\r\n\r\n");
}

#[tokio::test]
async fn refused_bytes_behind_the_request_end_the_connection_at_once() {
    let first = "GET /a HTTP/1.1\r\n\r\n";
    for (start, later) in [(format!("{first}x"), ""), (first.to_owned(), "x")] {
        let (mut client, served) = serve_echo(OPTIONS, true);
        client.write_all(start.as_bytes()).await.unwrap();
        tokio::task::yield_now().await;
        client.write_all(later.as_bytes()).await.unwrap();
        assert!(served.await.unwrap().is_none());
        let mut text = String::new();
        client.read_to_string(&mut text).await.unwrap();
        assert_eq!(text, "");
    }
}

#[tokio::test]
async fn a_slow_head_is_refused_and_silence_is_not_answered() {
    let options = SingleOptions { head_timeout: Duration::from_millis(50), ..OPTIONS };
    for (start, wanted) in [("GET / HTTP/1.1\r\n", "not complete in time"), ("", "")] {
        let (mut client, served) = serve_echo(options, false);
        client.write_all(start.as_bytes()).await.unwrap();
        drop(served.await.unwrap());
        let mut text = String::new();
        client.read_to_string(&mut text).await.unwrap();
        assert!(text.contains(wanted) && text.is_empty() == start.is_empty(), "{text}");
    }
}

#[tokio::test]
async fn a_head_timeout_without_end_does_not_break_the_clock() {
    let (mut client, served) = serve_echo(SingleOptions { head_timeout: Duration::MAX, ..OPTIONS }, false);
    tokio::task::yield_now().await;
    client.write_all(b"GET /a HTTP/1.1\r\n\r\n").await.unwrap();
    assert!(served.await.unwrap().is_some());
}
