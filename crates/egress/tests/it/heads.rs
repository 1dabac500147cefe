//! Requests that two readers would take differently. Nothing of them gets anywhere.

use std::sync::atomic::Ordering;

use herma_egress::EgressVerdict::{Allowed, Denied};
use herma_egress::{EgressVerdict, Reason};

use super::client::{Client, ask, connect};
use super::hellos::Hello;
use super::kit::{HOST, Setup};
use super::server::echo;

const END: &str = "\r\n\r\n";

fn bad_heads() -> Vec<String> {
    let connect = |more: &str| format!("CONNECT {HOST}:443 HTTP/1.1\r\nHost: {HOST}:443\r\n{more}{END}");
    let plain = |more: &str| format!("GET http://{HOST}/ HTTP/1.1\r\nHost: {HOST}\r\n{more}{END}");
    let many = (0..101).map(|at| format!("x-{at}: 1\r\n")).collect::<Vec<_>>().concat();
    vec![
        connect("Host: evil.example"),
        connect(&format!("Host: {HOST}:443")),
        connect("Content-Length: 5"),
        connect("Transfer-Encoding: chunked"),
        connect("a: 1\r\n b"),
        connect("a: 1\r\n\tb"),
        connect("a: 1\rb: 2"),
        connect("a: 1\nb: 2"),
        connect("a: 1\r"),
        connect("a: 1\n"),
        format!("CONNECT {HOST}:443 HTTP/1.1\rHost: {HOST}{END}"),
        format!("CONNECT {HOST}:443 HTTP/1.1\r\n Host: {HOST}{END}"),
        connect("a\0b: 1"),
        connect("a : 1"),
        connect(": 1"),
        connect("nothing"),
        connect(&format!("{many}x: 1")),
        connect(&format!("a: {}", "x".repeat(17 << 10))),
        format!("CONNECT {HOST}:443 HTTP/1.1{END}"),
        format!("CONNECT {HOST} HTTP/1.1\r\nHost: {HOST}{END}"),
        format!("CONNECT {HOST}:443 HTTP/1.1\r\nHost: evil.example:443{END}"),
        format!("CONNECT {HOST}:443 HTTP/1.1\r\nHost: {HOST}:444{END}"),
        format!("CONNECT {HOST}:443 HTTP/2.0\r\nHost: {HOST}{END}"),
        format!("CONNECT  {HOST}:443 HTTP/1.1\r\nHost: {HOST}{END}"),
        format!("CONNECT {HOST}:443 HTTP/1.1 \r\nHost: {HOST}{END}"),
        format!("\r\nCONNECT {HOST}:443 HTTP/1.1\r\nHost: {HOST}{END}"),
        format!("connect {HOST}:443 HTTP/1.1\r\nHost: {HOST}{END}"),
        format!("GET / HTTP/1.1\r\nHost: {HOST}{END}"),
        format!("GET https://{HOST}/ HTTP/1.1\r\nHost: {HOST}{END}"),
        format!("GET http://{HOST}/ HTTP/1.0\r\nHost: {HOST}{END}"),
        format!("GET http://user@{HOST}/ HTTP/1.1\r\nHost: {HOST}{END}"),
        format!("GET http://{HOST}/#x HTTP/1.1\r\nHost: {HOST}{END}"),
        format!("GET http://{HOST}:8080/ HTTP/1.1\r\nHost: {HOST}{END}"),
        format!("TRACE http://{HOST}/ HTTP/1.1\r\nHost: {HOST}{END}"),
        format!("PRI * HTTP/2.0{END}SM{END}"),
        plain("Transfer-Encoding: chunked"),
        plain("Content-Length: 3\r\nTransfer-Encoding: chunked"),
        plain("Content-Length: 3\r\nContent-Length: 3"),
        plain("Content-Length: 3\r\nContent-Length: 4"),
        plain("Transfer-Encoding: chunked\r\nContent-Length: 3"),
        plain("TRANSFER-ENCODING: CHUNKED"),
        plain("Transfer-Encoding:\tchunked"),
        plain("Transfer-Encoding: chunked, identity"),
        plain("Transfer-Encoding : chunked"),
        plain("Transfer-Encoding: chunked\r\nTransfer-Encoding: identity"),
        plain("Content-Length: 3 3"),
        plain("Content-Length: 0x3"),
        plain("Content-Length: -3"),
        plain("Content-Length: +3"),
        plain("Content-Length: 3, 3"),
        plain("Content-Length:"),
        plain("Content-Length: 99999999999999999999"),
        plain("Connection: content-length\r\nContent-Length: 3"),
        plain("Connection: close, Host"),
        plain("Transfer-Encoding: identity"),
        plain("Transfer-Encoding: xchunked"),
        plain("Transfer-Encoding: \"chunked\""),
        plain("Transfer-Encoding:chunked"),
        plain("Transfer-Encoding: gzip, chunked"),
        plain("Transfer-Encoding: \u{b}chunked"),
        plain("Transfer-Encoding\u{b}: chunked"),
        plain("x: 1\r\n Transfer-Encoding: chunked"),
        plain("x: 1\nTransfer-Encoding: chunked"),
        plain("x: 1\rTransfer-Encoding: chunked"),
        plain("Content-Length: 3\r\ncontent-length: 0"),
        plain("Content-Length: 3\r\n 4"),
        plain("Host: evil.example"),
        format!("GET http://{HOST}/ HTTP/1.1\r\nHost: evil.example{END}"),
        format!("GET http://{HOST}/ HTTP/1.1\r\nHost: {HOST}:8080{END}"),
        format!("GET http://{HOST}/ HTTP/1.1\r\nHost:{END}"),
        format!("GET http://{HOST}/ HTTP/1.1{END}"),
        format!("GET http://{HOST}/<a> HTTP/1.1\r\nHost: {HOST}{END}"),
        format!("GET /http://{HOST}/ HTTP/1.1\r\nHost: {HOST}{END}"),
        format!("GET\thttp://{HOST}/ HTTP/1.1\r\nHost: {HOST}{END}"),
        format!("GET http://{HOST}/ HTTP/1.1\nHost: {HOST}\n\n"),
        format!("GET http://{HOST}/\u{e9} HTTP/1.1\r\nHost: {HOST}{END}"),
    ]
}

#[test]
fn an_ambiguous_head_is_refused_and_recorded() {
    let server = echo();
    let rules = ["example.org", "http://example.org", "http://example.org:8080"];
    let proxy = Setup::new(server.address).rules(&rules).start();
    let heads = bad_heads();
    for head in &heads {
        let answer = ask(&proxy, head);
        assert!(
            answer.starts_with("HTTP/1.1 400 Bad Request (herma egress: bad_request)\r\n"),
            "{head:?}: {answer}"
        );
        assert!(
            answer.contains("x-herma-egress: bad_request")
                && answer.contains("herma egress denied the request"),
            "{answer}"
        );
    }
    assert!(proxy.verdicts().iter().all(|verdict| *verdict == Denied(Reason::BadRequest)));
    assert_eq!(proxy.decided().len(), heads.len());
    assert_eq!(server.connections.load(Ordering::SeqCst), 0);
}

#[test]
fn the_refusal_of_a_bad_head_names_the_problem() {
    let server = echo();
    let proxy = Setup::new(server.address).start();
    let head = |more: &str| format!("CONNECT {HOST}:443 HTTP/1.1\r\nHost: {HOST}\r\n{more}{END}");
    for (head, said) in [
        (head("a: 1\r\n b"), "folded over several lines"),
        (head("a: 1\nb: 2"), "does not end with CR LF"),
        (head("Transfer-Encoding: chunked"), "`transfer-encoding` is not accepted"),
        (head("Host: a.example"), "`host` must be there once"),
        (format!("GET https://{HOST}/ HTTP/1.1\r\nHost: {HOST}{END}"), "https is asked for with CONNECT"),
        (format!("GET / HTTP/1.1\r\nHost: {HOST}{END}"), "this is a proxy"),
    ] {
        let answer = ask(&proxy, head);
        assert!(answer.contains(said), "{said}: {answer}");
    }
}

#[test]
fn a_host_that_can_be_read_in_two_ways_is_denied_by_name() {
    let server = echo();
    let proxy = Setup::new(server.address).start();
    let hosts = [
        "localhost",
        "127.1",
        "2130706433",
        "0x7f000001",
        "example.org.",
        "ex%61mple.org",
        "[::1%25lo]",
        "metadata",
    ];
    for host in hosts {
        let answer = ask(&proxy, format!("CONNECT {host}:443 HTTP/1.1\r\nHost: {host}:443{END}"));
        assert!(answer.starts_with("HTTP/1.1 403 ") && answer.contains("bad_host"), "{host}: {answer}");
        assert!(answer.contains(&format!("CONNECT {host}:")), "{answer}");
    }
    assert!(proxy.verdicts().iter().all(|verdict| *verdict == Denied(Reason::BadHost)));
    assert_eq!(server.connections.load(Ordering::SeqCst), 0);
}

#[test]
fn old_clients_ask_for_tunnels_without_naming_a_host() {
    let server = echo();
    let proxy = Setup::new(server.address).start();
    let mut client = Client::new(&proxy);
    client.send(format!("CONNECT {HOST}:443 HTTP/1.0{END}"));
    assert!(client.head().starts_with("HTTP/1.0 200 Connection established\r\n"));
    let hello = Hello::of(HOST).bytes();
    client.send(&hello);
    assert_eq!(client.exactly(hello.len()), hello);
    assert_eq!(proxy.verdicts(), [Allowed]);
}

#[test]
fn a_head_may_come_byte_by_byte_and_with_the_hello_behind_it() {
    let server = echo();
    let proxy = Setup::new(server.address).start();
    let hello = Hello::of(HOST).bytes();
    let head = format!("CONNECT {HOST}:443 HTTP/1.1\r\nHost: {HOST}\r\nUser-Agent: x{END}");
    let mut client = Client::new(&proxy);
    client.0.set_nodelay(true).unwrap();
    for byte in [head.as_bytes(), &hello].concat() {
        client.send([byte]);
    }
    assert!(client.head().starts_with("HTTP/1.1 200 "));
    assert_eq!(client.exactly(hello.len()), hello);
    let mut client = Client::new(&proxy);
    client.send([head.as_bytes(), &hello].concat());
    assert!(client.head().starts_with("HTTP/1.1 200 "));
    assert_eq!(client.exactly(hello.len()), hello);
}

#[test]
fn a_password_for_the_proxy_is_never_asked_for_nor_needed() {
    let server = echo();
    let proxy = Setup::new(server.address).start();
    let answer = ask(&proxy, "CONNECT other.example:443 HTTP/1.1\r\nHost: other.example\r\n\r\n");
    assert!(answer.starts_with("HTTP/1.1 403 ") && !answer.to_lowercase().contains("proxy-auth"), "{answer}");
    let mut client = Client::new(&proxy);
    client
        .send(format!("CONNECT {HOST}:443 HTTP/1.1\r\nHost: {HOST}\r\nProxy-Authorization: Basic eDp5{END}"));
    assert!(client.head().starts_with("HTTP/1.1 200 "));
}

#[test]
fn a_client_that_asks_nothing_is_no_decision() {
    let server = echo();
    let proxy = Setup::new(server.address).start();
    drop(Client::new(&proxy));
    let mut half = Client::new(&proxy);
    half.send("CONNECT exam");
    drop(half);
    let (_client, head) = connect(&proxy, &format!("{HOST}:443"));
    assert!(head.starts_with("HTTP/1.1 200 "));
    assert_eq!(proxy.verdicts(), Vec::<EgressVerdict>::new());
}
