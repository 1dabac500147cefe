use http_body_util::BodyExt as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};

use super::*;

const LONG: Duration = Duration::from_secs(30);
const OPTIONS: Options = Options {
    head: HeadLimits { max_bytes: 1 << 10, max_headers: 20 },
    head_timeout: LONG,
    write_timeout: LONG,
    refuse: |bad| {
        let mut response = Response::new(Bytes::from(bad.to_string()));
        *response.status_mut() = bad.status();
        response
    },
};

/// A server that answers each request with its target and its body.
fn echo(options: Options) -> (DuplexStream, watch::Sender<bool>) {
    let (client, server) = duplex(1 << 16);
    let (stop, stopped) = watch::channel(false);
    tokio::spawn(async move {
        serve(server, options, stopped, |request| async move {
            let (head, body) = request.into_parts();
            let body = body.collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
            let text = format!("{} {}", head.uri, String::from_utf8_lossy(&body));
            // Later than the request, so that hyper is blocked on reading when the response begins.
            tokio::time::sleep(Duration::from_millis(5)).await;
            Response::new(Full::new(Bytes::from(text)))
        })
        .await;
    });
    (client, stop)
}

/// Everything that a client gets for these bytes.
async fn exchange(bytes: &[u8]) -> String {
    let (mut client, _stop) = echo(OPTIONS);
    client.write_all(bytes).await.unwrap();
    rest(&mut client).await
}

async fn rest(client: &mut DuplexStream) -> String {
    let mut bytes = Vec::new();
    client.read_to_end(&mut bytes).await.unwrap();
    String::from_utf8(bytes).unwrap()
}

/// Reads until the text is there.
async fn until(client: &mut DuplexStream, text: &str) -> String {
    let mut got = String::new();
    while !got.ends_with(text) {
        got.push(char::from(client.read_u8().await.unwrap()));
    }
    got
}

#[tokio::test]
async fn requests_follow_one_another_with_and_without_bodies() {
    let (mut client, _stop) = echo(OPTIONS);
    for (request, wanted) in [
        ("GET /a HTTP/1.1\r\n\r\n", "/a "),
        ("POST /b HTTP/1.1\r\ncontent-length: 5\r\n\r\nhello", "/b hello"),
        ("POST /c HTTP/1.1\r\nContent-Length: 0\r\n\r\n", "/c "),
        ("GET /d HTTP/1.1\r\n\r\n", "/d "),
    ] {
        for byte in request.as_bytes() {
            client.write_all(&[*byte]).await.unwrap();
        }
        let got = until(&mut client, wanted).await;
        assert!(got.starts_with("HTTP/1.1 200 OK\r\n"), "{got}");
    }
}

#[tokio::test]
async fn a_bad_head_is_refused_behind_a_good_request_too() {
    let (mut client, _stop) = echo(OPTIONS);
    client.write_all(b"POST /b HTTP/1.1\r\ncontent-length: 2\r\n\r\nhi").await.unwrap();
    until(&mut client, "/b hi").await;
    client.write_all(b"GET / HTTP/1.1\r\na: 1\r\n b\r\n\r\nGET /never HTTP/1.1\r\n\r\n").await.unwrap();
    let got = rest(&mut client).await;
    assert!(
        got.starts_with("HTTP/1.1 400 Bad Request\r\n") && got.contains("connection: close\r\n"),
        "{got}"
    );
    assert!(got.ends_with("folded over several lines; send it on one"), "{got}");
}

#[tokio::test]
async fn pipelined_bytes_are_never_a_request() {
    for second in ["GET /never HTTP/1.1\r\n\r\n", "x", "\r\n"] {
        let (mut client, _stop) = echo(OPTIONS);
        let first = format!("POST /b HTTP/1.1\r\ncontent-length: 2\r\n\r\nhi{second}");
        client.write_all(first.as_bytes()).await.unwrap();
        let got = rest(&mut client).await;
        assert!(got.contains("/b hi") && !got.contains("/never"), "{got}");
        assert_eq!(got.matches("HTTP/1.1 ").count(), 2, "{got}");
        assert!(got.contains("HTTP/1.1 400 Bad Request\r\n") && got.contains("one at a time"), "{got}");
    }
}

#[tokio::test]
async fn a_body_ends_where_its_length_says() {
    let got = exchange(b"POST /b HTTP/1.1\r\ncontent-length: 2\r\n\r\nhiGET /never HTTP/1.1\r\n\r\n").await;
    assert!(!got.contains("/never"), "{got}");
    assert!(got.contains("/b hi"), "{got}");
}

#[tokio::test]
async fn a_client_that_leaves_in_a_head_gets_nothing() {
    for start in [&b""[..], b"GET / HTT"] {
        let (mut client, _stop) = echo(OPTIONS);
        client.write_all(start).await.unwrap();
        client.shutdown().await.unwrap();
        assert_eq!(rest(&mut client).await, "");
    }
}

#[tokio::test]
async fn a_head_in_time_or_none() {
    let (mut client, _stop) = echo(Options { head_timeout: Duration::from_millis(50), ..OPTIONS });
    client.write_all(b"GET / HTTP/1.1\r\n").await.unwrap();
    assert_eq!(rest(&mut client).await, "");
}

#[tokio::test]
async fn a_connection_that_is_idle_after_a_response_ends_in_time() {
    let (mut client, _stop) = echo(Options { head_timeout: Duration::from_millis(50), ..OPTIONS });
    client.write_all(b"GET /a HTTP/1.1\r\n\r\n").await.unwrap();
    assert!(rest(&mut client).await.ends_with("/a "));
}

#[tokio::test]
async fn a_stop_ends_an_idle_connection_and_lets_a_request_finish() {
    let (mut idle, stop) = echo(OPTIONS);
    stop.send(true).unwrap();
    assert_eq!(rest(&mut idle).await, "");

    let (mut busy, stop) = echo(OPTIONS);
    busy.write_all(b"POST /b HTTP/1.1\r\ncontent-length: 2\r\n\r\nh").await.unwrap();
    tokio::task::yield_now().await;
    stop.send(true).unwrap();
    tokio::task::yield_now().await;
    busy.write_all(b"i").await.unwrap();
    let got = rest(&mut busy).await;
    assert!(got.contains("connection: close\r\n") && got.ends_with("/b hi"), "{got}");
}

#[tokio::test]
async fn an_old_client_gets_one_response() {
    let got = exchange(b"GET /a HTTP/1.0\r\nconnection: keep-alive\r\n\r\n").await;
    assert!(got.contains("connection: close\r\n") && got.ends_with("/a "), "{got}");
}
