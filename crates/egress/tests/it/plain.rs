//! Plain HTTP: one request, rewritten for its host, and its answer as it comes.

use std::sync::atomic::Ordering;

use herma_egress::EgressVerdict::{Allowed, Denied};
use herma_egress::Reason;
use herma_egress::proxy::Cut;

use super::client::{Client, ask};
use super::kit::{HOST, Proxy, Setup};
use super::server::{Server, silent, web};

const FINE: &str = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello";

fn start(server: &Server) -> Proxy {
    let rules = ["GET,HEAD,POST http://example.org", "http://example.org:8080"];
    Setup::new(server.address).rules(&rules).start()
}

#[test]
fn a_request_is_sent_further_for_its_host_and_for_this_once() {
    let server = web(FINE);
    let proxy = start(&server);
    let answer = ask(
        &proxy,
        "GET http://EXAMPLE.org/a/b?c=d HTTP/1.1\r\nHost: example.org\r\nAccept: */*\r\nProxy-Connection: keep-alive\r\n\
         Proxy-Authorization: Basic eDp5\r\nConnection: keep-alive, X-Hop\r\nX-Hop: 1\r\nTE: trailers\r\nUpgrade: h2c\r\n\r\n",
    );
    assert_eq!(answer, FINE);
    assert_eq!(
        server.came_as_text(),
        "GET /a/b?c=d HTTP/1.1\r\nhost: example.org\r\nAccept: */*\r\nconnection: close\r\n\r\n"
    );
    let decided = &proxy.decided()[0];
    assert_eq!((decided.method.as_str(), decided.port, decided.verdict), ("GET", 80, Allowed));
    assert_eq!(decided.rule.as_deref(), Some("GET,HEAD,POST http://example.org"));
}

#[test]
fn a_target_without_a_path_gets_one_and_a_port_stays() {
    for (url, host, first) in [
        ("http://example.org", "example.org", "GET / HTTP/1.1\r\nhost: example.org\r\n"),
        ("http://example.org?x", "example.org", "GET /?x HTTP/1.1\r\nhost: example.org\r\n"),
        ("http://example.org:80/", "example.org", "GET / HTTP/1.1\r\nhost: example.org\r\n"),
        ("http://example.org:8080/", "example.org:8080", "GET / HTTP/1.1\r\nhost: example.org:8080\r\n"),
    ] {
        let server = web(FINE);
        let proxy = start(&server);
        assert_eq!(ask(&proxy, format!("GET {url} HTTP/1.1\r\nHost: {host}\r\n\r\n")), FINE);
        assert!(server.came_as_text().starts_with(first), "{}", server.came_as_text());
    }
}

#[test]
fn a_body_is_sent_further_up_to_its_length() {
    let server = web(FINE);
    let proxy = start(&server);
    let mut client = Client::new(&proxy);
    client.send("POST http://example.org/ HTTP/1.1\r\nHost: example.org\r\nContent-Length: 11\r\n\r\nhello");
    client.send(" world");
    assert_eq!(client.rest_as_text(), FINE);
    assert!(server.came_as_text().ends_with("Content-Length: 11\r\nconnection: close\r\n\r\nhello world"));
}

#[test]
fn a_second_request_on_the_same_connection_goes_nowhere() {
    let hidden = "GET http://evil.example/ HTTP/1.1\r\nHost: evil.example\r\n\r\n";
    let server = web(FINE);
    let proxy = start(&server);
    for first in [
        "GET http://example.org/ HTTP/1.1\r\nHost: example.org\r\n\r\n".to_owned(),
        "POST http://example.org/ HTTP/1.1\r\nHost: example.org\r\nContent-Length: 2\r\n\r\n{}".to_owned(),
    ] {
        ask(&proxy, first + hidden);
    }
    assert!(!server.came_as_text().contains("evil"), "{}", server.came_as_text());
    assert_eq!(proxy.verdicts(), [Allowed, Allowed]);
}

#[test]
fn a_client_that_sends_a_second_request_is_cut_off_at_once() {
    let first = "GET http://example.org/ HTTP/1.1\r\nHost: example.org\r\n\r\n";
    let server = silent();
    let proxy = start(&server);
    let mut client = Client::new(&proxy);
    client.send(first.repeat(2));
    assert_eq!(client.rest(), b"");
    let mut client = Client::new(&proxy);
    client.send(first);
    proxy.until(|counts| counts.allowed == 2);
    client.send(first);
    assert_eq!(client.rest(), b"");
    proxy.until(|counts| counts.cut.get(&Cut::Ahead) == Some(&2));
}

#[test]
fn a_body_that_ends_too_early_ends_the_exchange() {
    let server = web(FINE);
    let proxy = start(&server);
    let mut client = Client::new(&proxy);
    client.send("POST http://example.org/ HTTP/1.1\r\nHost: example.org\r\nContent-Length: 11\r\n\r\nhello");
    client.end_half();
    client.rest();
    let counts = proxy.until(|counts| counts.open == 0);
    assert_eq!(counts.cut.get(&Cut::Broken), Some(&1), "{counts:?}");
}

#[test]
fn only_listed_methods_hosts_and_ports_are_asked() {
    let server = web(FINE);
    let proxy = start(&server);
    for (request, reason) in [
        ("PUT http://example.org/", Reason::MethodNotListed),
        ("POST http://example.org:8080/", Reason::MethodNotListed),
        ("GET http://example.org:81/", Reason::PortNotListed),
        ("GET http://other.example/", Reason::NotListed),
    ] {
        let host = request.split('/').nth(2).unwrap();
        let answer = ask(&proxy, format!("{request} HTTP/1.1\r\nHost: {host}\r\n\r\n"));
        assert!(answer.starts_with("HTTP/1.1 403 ") && answer.contains(reason.word()), "{answer}");
        assert_eq!(proxy.verdicts().last(), Some(&Denied(reason)));
    }
    assert_eq!(server.connections.load(Ordering::SeqCst), 0);
}

#[test]
fn a_redirect_is_the_clients_to_follow() {
    const AWAY: &str = "HTTP/1.1 302 Found\r\nLocation: http://169.254.169.254/latest\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    let server = web(AWAY);
    let proxy = start(&server);
    assert_eq!(ask(&proxy, format!("GET http://{HOST}/ HTTP/1.1\r\nHost: {HOST}\r\n\r\n")), AWAY);
    assert_eq!(server.connections.load(Ordering::SeqCst), 1);
    let follow = "GET http://169.254.169.254/latest HTTP/1.1\r\nHost: 169.254.169.254\r\n\r\n";
    assert!(ask(&proxy, follow).starts_with("HTTP/1.1 403 "));
    assert_eq!(server.connections.load(Ordering::SeqCst), 1);
}

#[test]
fn the_answer_to_head_has_no_body_also_when_it_is_denied() {
    let server = web(FINE);
    let proxy = start(&server);
    let answer = ask(&proxy, "HEAD http://other.example/ HTTP/1.1\r\nHost: other.example\r\n\r\n");
    assert!(answer.starts_with("HTTP/1.1 403 ") && answer.ends_with("\r\n\r\n"), "{answer}");
}
