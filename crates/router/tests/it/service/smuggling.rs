//! Requests that two readers would cut differently. Nothing of them gets anywhere.

use std::time::Duration;

use super::client::{request, request_with};
use super::kit::{ENDPOINTS, Router, STREAMS, Setup, TOKEN};
use super::server::{Do, STREAM, Server, chunk, fine, good, good_stream, http};

fn start() -> (Server, Router) {
    let server = fine();
    let router = Setup::new(&[&server]).start();
    (server, router)
}

const CHAT: (&str, &str) = ENDPOINTS[0];

/// A whole request that must never be seen as one.
fn hidden() -> String {
    request("/v1/messages", ENDPOINTS[2].1)
}

/// Heads that no reader may take, with the status that says so.
fn bad_heads() -> Vec<(u16, String)> {
    let (path, body) = CHAT;
    let length = body.len();
    let with = |headers: &str| {
        format!(
            "POST {path} HTTP/1.1\r\nhost: r\r\nauthorization: Bearer {TOKEN}\r\n\
             content-type: application/json\r\n{headers}\r\n{body}"
        )
    };
    let many = (0..200).map(|at| format!("x-{at}: 1\r\n")).collect::<Vec<_>>().concat();
    vec![
        (411, with(&format!("content-length: {length}\r\ntransfer-encoding: chunked\r\n"))),
        (411, with(&format!("transfer-encoding: chunked\r\ncontent-length: {length}\r\n"))),
        (411, with("transfer-encoding: chunked\r\n")),
        (411, with("Transfer-Encoding: identity\r\n")),
        (411, with(&format!("content-length: {length}\r\ntransfer-encoding:\x0bchunked\r\n"))),
        (411, with("transfer-encoding: chunked\r\ntransfer-encoding: identity\r\n")),
        (411, with("TRANSFER-ENCODING: CHUNKED\r\n")),
        (411, with("transfer-encoding:\tchunked\r\n")),
        (411, with("transfer-encoding: chunked, identity\r\n")),
        (411, with("transfer-encoding: identity, chunked\r\n")),
        (411, with("transfer-encoding: \"chunked\"\r\n")),
        (411, with("transfer-encoding:\r\n")),
        (400, with(&format!("content-length: {length}\r\ntransfer-encoding : chunked\r\n"))),
        (400, with(&format!("content-length: {length}\r\n transfer-encoding: chunked\r\n"))),
        (400, with(&format!("content-length: {length}\r\ncontent-length: {length}\r\n"))),
        (400, with(&format!("content-length: {length}\r\ncontent-length: 0\r\n"))),
        (400, with(&format!("content-length: 0\r\ncontent-length: {length}\r\n"))),
        (400, with(&format!("content-length: {length}, {length}\r\n"))),
        (400, with(&format!("content-length: +{length}\r\n"))),
        (400, with("content-length: -1\r\n")),
        (400, with(&format!("content-length: {length} {length}\r\n"))),
        (400, with(&format!("content-length: {length}\r\nContent-Length: {}\r\n", length + 1))),
        (400, with("content-length: 0x10\r\n")),
        (400, with("content-length: 18446744073709551616\r\n")),
        (400, with("content-length:\r\n")),
        (400, with(&format!("x: 1\r\n 2\r\ncontent-length: {length}\r\n"))),
        (400, with(&format!("x: 1\r\n\t2\r\ncontent-length: {length}\r\n"))),
        (400, with(&format!("x: 1\rcontent-length: {length}\r\n"))),
        (400, with(&format!("x: 1\r\rcontent-length: {length}\r\n"))),
        (400, with(&format!("x: 1\ncontent-length: {length}\r\n"))),
        (400, with(&format!("content-length: {length}\r\nx: 1\n\r\n"))),
        (400, with(&format!("content-length: {length}\r\nx\x01y: 1\r\n"))),
        (400, with(&format!("content-length: {length}\r\nx: \x00\r\n"))),
        (400, with(&format!("content-length: {length}\r\nx(y): 1\r\n"))),
        (400, with(&format!("content-length: {length}\r\nnothing\r\n"))),
        (431, with(&format!("content-length: {length}\r\nx: {}\r\n", "y".repeat(70_000)))),
        (431, with(&format!("content-length: {length}\r\n{many}"))),
        (400, format!("\r\n{}", request(path, body))),
        (400, format!("\n{}", request(path, body))),
        (400, request(path, body).replacen(" HTTP/1.1\r\n", " HTTP/1.1\r", 1)),
        (400, request(path, body).replacen(" HTTP/1.1\r\n", " HTTP/1.1\n", 1)),
        (400, request(path, body).replacen(" HTTP/1.1\r\n", " HTTP/1.1\r\n x: 1\r\n", 1)),
        (400, request(path, body).replace("\r\n", "\n")),
        (400, request(path, body).replacen(" HTTP/1.1", "", 1)),
        (400, request(path, body).replacen("HTTP/1.1", "HTTP/1.2", 1)),
        (400, request(path, body).replacen("HTTP/1.1", "HTTP/2.0", 1)),
        (400, request(path, body).replacen("HTTP/1.1", "http/1.1", 1)),
        (400, request(path, body).replacen("POST ", "POST  ", 1)),
        (400, request(path, body).replacen("POST ", "POST\t", 1)),
        (400, request(path, body).replacen("POST ", " POST ", 1)),
        (400, request(path, body).replacen("POST ", "PO ST ", 1)),
        (400, request(path, body).replacen("POST /v1", "POST v1", 1)),
        (400, request(path, body).replacen("completions", "completions\u{7f}", 1)),
        (400, "GET /healthz\r\n\r\n".to_owned()),
        (400, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0".to_owned()),
        (400, "\u{16}\u{3}\u{1}\u{2}\0\u{1}\0\u{1}\u{fc}\u{3}\u{3}\r\n\r\n".to_owned()),
    ]
}

#[test]
fn ambiguous_framing_is_refused_and_the_connection_ends() {
    let (server, router) = start();
    for (status, bytes) in bad_heads() {
        let mut connection = router.client.connect();
        connection.send(bytes.as_bytes());
        connection.send(hidden().as_bytes());
        let shown = bytes.chars().take(300).collect::<String>();
        let reply = connection.reply().unwrap_or_else(|| panic!("no answer to {shown:?}"));
        assert_eq!(reply.status, status, "{shown:?}: {}", reply.text());
        assert!(reply.json()["error"]["message"].as_str().is_some_and(|said| said.len() > 10), "{shown:?}");
        assert_eq!(connection.rest().0, "", "after {shown:?}");
    }
    assert_eq!(server.connections(), 0);
    router.records(0);
}

#[test]
fn the_same_holds_when_it_comes_byte_by_byte() {
    let (server, router) = start();
    for (status, bytes) in bad_heads().into_iter().filter(|(_, bytes)| bytes.len() < 1000) {
        let mut connection = router.client.connect();
        for byte in bytes.as_bytes().chunks(1) {
            connection.send(byte);
        }
        connection.send(hidden().as_bytes());
        let reply = connection.reply().unwrap_or_else(|| panic!("no answer to {bytes:?}"));
        assert_eq!(reply.status, status, "{bytes:?}: {}", reply.text());
        assert!(reply.json()["error"]["message"].is_string(), "{bytes:?}");
        assert_eq!(connection.rest().0, "", "after {bytes:?}");
    }
    assert_eq!(server.connections(), 0);
    router.records(0);
}

#[test]
fn a_good_request_is_taken_byte_by_byte() {
    let (server, router) = start();
    let mut connection = router.client.connect();
    for _ in 0..2 {
        for byte in request(CHAT.0, CHAT.1).as_bytes().chunks(1) {
            connection.send(byte);
        }
        assert_eq!(connection.reply().unwrap().status, 200);
    }
    router.records(2);
    assert_eq!(server.requests().len(), 2);
}

#[test]
fn early_bytes_reach_nothing_and_the_answer_is_complete() {
    let (server, router) = start();
    let (path, body) = CHAT;
    for second in [hidden(), "GET /healthz HTTP/1.1\r\n\r\n".to_owned(), "x".to_owned(), "\r\n".to_owned()] {
        let before = server.requests().len();
        let mut connection = router.client.connect();
        connection.send(format!("{}{second}", request(path, body)).as_bytes());
        let first = connection.reply().unwrap();
        assert_eq!((first.status, first.is_whole), (200, true));
        assert_eq!(first.body, body_of(&good(path)));
        if let Some(refused) = connection.reply() {
            assert_eq!(refused.status, 400, "{second:?}");
            assert!(refused.text().contains("one at a time"), "{}", refused.text());
        }
        assert_eq!(connection.rest().0, "");
        assert_eq!(server.requests().len(), before + 1);
    }
    router.records(4);
}

#[test]
fn bytes_behind_a_head_without_a_length_are_neither_a_body_nor_a_request() {
    let (server, router) = start();
    for early in [hidden(), "early".to_owned()] {
        let mut connection = router.client.connect();
        connection.send(format!("GET /healthz HTTP/1.1\r\nhost: r\r\n\r\n{early}").as_bytes());
        let reply = connection.reply().unwrap();
        assert_eq!((reply.status, reply.text().as_str()), (200, "ok\n"));
        let refused = connection.reply().unwrap();
        assert_eq!(refused.status, 400, "{}", refused.text());
        assert_eq!(connection.rest().0, "");
    }
    assert_eq!(server.connections(), 0);
    router.records(0);
}

#[test]
fn a_target_in_absolute_form_is_not_a_path_of_the_router() {
    let (server, router) = start();
    let (path, body) = CHAT;
    for target in
        [format!("http://r{path}"), format!("https://elsewhere.example{path}"), format!("x://r{path}")]
    {
        let mut connection = router.client.connect();
        connection.send(request(path, body).replacen(path, &target, 1).as_bytes());
        assert_eq!(connection.reply().unwrap().status, 404, "{target}");
    }
    assert_eq!(server.connections(), 0);
    router.records(0);
}

#[test]
fn a_second_request_in_the_middle_of_a_stream_reaches_nothing_and_the_stream_is_whole() {
    let server = Server::new(|_, _| {
        vec![
            Do::Send(STREAM.as_bytes().to_vec()),
            Do::Send(chunk(b"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"one\"}}]}\n\n")),
            Do::Wait,
            Do::Send(chunk(b"data: [DONE]\n\n")),
            Do::Send(b"0\r\n\r\n".to_vec()),
        ]
    });
    let router = Setup::new(&[&server]).start();
    let mut connection = router.client.connect();
    connection.send(request(CHAT.0, &CHAT.1.replace("{\"model", "{\"stream\":true,\"model")).as_bytes());
    connection.until("one");
    connection.send(hidden().as_bytes());
    std::thread::sleep(Duration::from_millis(100));
    server.go_on();
    let reply = connection.reply().unwrap();
    assert!(reply.is_whole && reply.text().ends_with("data: [DONE]\n\n"), "{reply:?}");
    if let Some(refused) = connection.reply() {
        assert_eq!(refused.status, 400);
    }
    assert_eq!(connection.rest().0, "");
    assert_eq!(server.requests().len(), 1);
    router.record();
}

#[test]
fn a_large_answer_is_whole_also_if_the_client_sends_on_and_reads_late() {
    let text = format!(
        r#"{{"model":"m","usage":{{"prompt_tokens":1,"completion_tokens":2}},"x":"{}"}}"#,
        "y".repeat(8 << 20)
    );
    let answer = http(200, "application/json", "", &text);
    let server = Server::answering(answer);
    let router = Setup::new(&[&server]).start();
    for _ in 0..3 {
        let mut connection = router.client.connect();
        connection.send(format!("{}{}", request(CHAT.0, CHAT.1), hidden()).as_bytes());
        std::thread::sleep(Duration::from_millis(100));
        connection.reads_slowly = true;
        let reply = connection.reply().unwrap();
        assert!(reply.is_whole);
        assert!(reply.body == text.as_bytes(), "the answer has other content");
        let _ = connection.rest();
    }
    assert_eq!(server.requests().len(), 3);
    router.records(3);
}

#[test]
fn after_a_refusal_the_same_connection_takes_the_next_request() {
    let (server, router) = start();
    let (path, body) = CHAT;
    let mut connection = router.client.connect();
    for (status, bytes) in [
        (403, request(path, &body.replace("\"m\"", "\"other\""))),
        (400, request(path, "{}")),
        (415, request_with(path, "content-encoding: gzip\r\n", body)),
        (404, request("/reload", body)),
        (401, request(path, body).replace(TOKEN, "wrong")),
        (405, request(path, body).replacen("POST", "PUT", 1)),
        (200, request(path, body)),
        (403, request(path, &body.replace("\"m\"", "\"other\""))),
        (200, request(path, body)),
    ] {
        connection.send(bytes.as_bytes());
        let reply = connection.reply().unwrap_or_else(|| panic!("closed before {status}"));
        assert_eq!(reply.status, status, "{}", reply.text());
    }
    assert_eq!(server.requests().len(), 2);
    router.records(6);
}

#[test]
fn protocol_upgrades_are_refused() {
    let (server, router) = start();
    let (path, body) = CHAT;
    for more in [
        "connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-key: x\r\nsec-websocket-version: 13\r\n",
        "connection: upgrade, http2-settings\r\nupgrade: h2c\r\nhttp2-settings: AAMAAABkAARAAAAAAAIAAAAA\r\n",
        "connection: content-length, authorization\r\n",
        "te: trailers\r\ntrailer: x\r\n",
        "expect: 100-continue\r\n",
        "max-forwards: 0\r\nproxy-connection: keep-alive\r\n",
    ] {
        let before = server.requests().len();
        let mut connection = router.client.connect();
        connection.send(request_with(path, more, body).as_bytes());
        let mut reply = connection.reply();
        assert!(reply.is_some(), "no answer to {more:?}");
        if more.contains("100-continue") && reply.as_ref().is_some_and(|reply| reply.status == 100) {
            reply = connection.reply();
        }
        assert_eq!(reply.unwrap().status, 200, "{more:?}");
        let got = server.requests()[before..].concat().to_ascii_lowercase();
        for word in ["upgrade", "http2-settings", "trailer", "expect", "max-forwards", "proxy-connection"] {
            assert!(!got.contains(word), "{word} in {got}");
        }
    }
    for request in [
        "CONNECT elsewhere.example:443 HTTP/1.1\r\nhost: elsewhere.example:443\r\n\r\n".to_owned(),
        format!(
            "CONNECT 127.0.0.1:{} HTTP/1.1\r\nhost: r\r\nauthorization: Bearer {TOKEN}\r\n\r\n",
            server.address().port()
        ),
        "OPTIONS * HTTP/1.1\r\nhost: r\r\n\r\n".to_owned(),
        "TRACE /healthz HTTP/1.1\r\nhost: r\r\n\r\n".to_owned(),
    ] {
        let before = server.connections();
        let mut connection = router.client.connect();
        connection.send(request.as_bytes());
        let reply = connection.reply().unwrap_or_else(|| panic!("no answer to {request:?}"));
        assert!(matches!(reply.status, 400 | 404 | 405), "{request:?}: {}", reply.status);
        assert_eq!(server.connections(), before);
    }
}

#[test]
fn an_old_client_gets_one_answer_without_chunks_and_then_the_end() {
    let server = Server::new(|_, request| {
        let whole = good_stream(request.split(' ').nth(1).unwrap());
        vec![Do::Send(STREAM.as_bytes().to_vec()), Do::Send(chunk(&whole)), Do::Send(b"0\r\n\r\n".to_vec())]
    });
    let router = Setup::new(&[&server]).start();
    let (path, body) = STREAMS[2];
    for old in [
        request(path, body).replacen("HTTP/1.1", "HTTP/1.0", 1),
        request_with(path, "connection: close\r\n", body),
    ] {
        let mut connection = router.client.connect();
        connection.send(old.as_bytes());
        let (text, _) = connection.rest();
        assert!(text.contains("connection: close\r\n"), "{text}");
        let is_chunked = text.contains("transfer-encoding: chunked\r\n");
        assert_eq!(is_chunked, old.contains("HTTP/1.1"), "{text}");
        assert!(is_chunked || text.ends_with(std::str::from_utf8(&good_stream(path)).unwrap()), "{text}");
    }
    router.records(2);
}

fn body_of(answer: &[u8]) -> &[u8] {
    let at = answer.windows(4).position(|end| end == b"\r\n\r\n").unwrap();
    &answer[at + 4..]
}
