//! Plain HTTP: one request, rewritten for its host, and its response.

use std::sync::atomic::Ordering;

use herma_egress::EgressVerdict::{Allowed, Denied};
use herma_egress::Reason;
use herma_egress::proxy::Cut;

use super::client::{Client, ask};
use super::kit::{HOST, Proxy, Setup};
use super::server::{Server, silent, web};

const FINE: &str = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello";
/// The same as the proxy forwards it.
const FINE_FORWARDED: &str = "HTTP/1.1 200 OK\r\ncontent-length: 5\r\nconnection: close\r\n\r\nhello";
const GET: &str = "GET http://example.org/ HTTP/1.1\r\nHost: example.org\r\n\r\n";

fn start(server: &Server) -> Proxy {
    let rules = ["GET,HEAD,POST http://example.org", "http://example.org:8080"];
    Setup::new(server.address).rules(&rules).start()
}

#[test]
fn a_plain_request_is_forwarded_in_origin_form_without_hop_by_hop_headers() {
    let server = web(FINE);
    let proxy = start(&server);
    let answer = ask(
        &proxy,
        "GET http://EXAMPLE.org/a/b?c=d HTTP/1.1\r\nHost: example.org\r\nAccept: */*\r\nProxy-Connection: keep-alive\r\n\
         Proxy-Authorization: Basic eDp5\r\nConnection: keep-alive, X-Hop\r\nX-Hop: 1\r\nTE: trailers\r\nUpgrade: h2c\r\n\r\n",
    );
    assert_eq!(answer, FINE_FORWARDED);
    assert_eq!(
        server.came_as_text(),
        "GET /a/b?c=d HTTP/1.1\r\nhost: example.org\r\naccept: */*\r\nconnection: close\r\n\r\n"
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
        assert_eq!(ask(&proxy, format!("GET {url} HTTP/1.1\r\nHost: {host}\r\n\r\n")), FINE_FORWARDED);
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
    assert_eq!(client.rest_as_text(), FINE_FORWARDED);
    assert!(server.came_as_text().ends_with("content-length: 11\r\nconnection: close\r\n\r\nhello world"));
}

#[test]
fn a_second_request_on_a_connection_is_never_forwarded() {
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
        assert!(answer.starts_with("HTTP/1.1 403 ") && answer.contains(reason.code()), "{answer}");
        assert_eq!(proxy.verdicts().last(), Some(&Denied(reason)));
    }
    assert_eq!(server.connections.load(Ordering::SeqCst), 0);
}

#[test]
fn a_redirect_is_the_clients_to_follow() {
    const AWAY: &str = "HTTP/1.1 302 Found\r\nLocation: http://169.254.169.254/latest\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    const AWAY_FORWARDED: &str = "HTTP/1.1 302 Found\r\nlocation: http://169.254.169.254/latest\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";
    let server = web(AWAY);
    let proxy = start(&server);
    assert_eq!(ask(&proxy, format!("GET http://{HOST}/ HTTP/1.1\r\nHost: {HOST}\r\n\r\n")), AWAY_FORWARDED);
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

#[test]
fn a_response_is_framed_anew_without_the_headers_of_the_servers_connection() {
    const CHUNKED: &str = "HTTP/1.1 200 Very Well\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\nKeep-Alive: timeout=5\r\n\
         Connection: X-Hop\r\nX-Hop: 1\r\nX-Kept: 1\r\n\r\n5\r\nhello\r\n0\r\n\r\n";
    let server = web(CHUNKED);
    let proxy = start(&server);
    let answer = ask(&proxy, GET);
    assert_eq!(
        answer,
        "HTTP/1.1 200 Very Well\r\nx-kept: 1\r\nconnection: close\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"
    );
    proxy.until(|counts| counts.open == 0 && counts.cut.is_empty());
}

#[test]
fn a_response_without_a_length_ends_with_its_connection() {
    let server = web("HTTP/1.0 200 OK\r\n\r\nhello");
    let proxy = start(&server);
    let answer = ask(&proxy, GET);
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    assert!(answer.ends_with("\r\n\r\n5\r\nhello\r\n0\r\n\r\n"), "{answer}");
}

#[test]
fn a_response_that_is_not_valid_http_becomes_an_error_that_the_client_can_read() {
    for bad in [
        "",
        "SSH-2.0-OpenSSH_9.2\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello!",
        "HTTP/1.1 200 OK\r\nContent-Length: +5\r\n\r\nhello",
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\nhello",
    ] {
        let server = web(bad);
        let proxy = start(&server);
        let answer = ask(&proxy, GET);
        assert!(
            answer.starts_with("HTTP/1.1 502 Bad Gateway (herma egress: no_response)\r\n"),
            "{bad:?}: {answer}"
        );
        assert!(!answer.contains("hello"), "{answer}");
        let counts = proxy.until(|counts| counts.open == 0);
        assert_eq!((counts.allowed, counts.cut.get(&Cut::Broken)), (1, Some(&1)), "{bad:?}");
    }
}

#[test]
fn a_body_that_breaks_off_is_never_a_complete_response() {
    for broken in [
        "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\nzz\r\nmore",
    ] {
        let server = web(broken);
        let proxy = start(&server);
        let answer = ask(&proxy, GET);
        assert!(!answer.ends_with("0\r\n\r\n") && !answer.contains("more"), "{answer}");
        let counts = proxy.until(|counts| counts.open == 0);
        assert_eq!(counts.cut.get(&Cut::Broken), Some(&1), "{broken:?}: {answer}");
    }
}

#[test]
fn a_client_may_close_its_half_while_the_response_comes() {
    let server = web(FINE);
    let proxy = start(&server);
    let mut client = Client::new(&proxy);
    client.send(GET);
    client.end_half();
    assert_eq!(client.rest_as_text(), FINE_FORWARDED);
}

#[test]
fn an_exchange_without_a_byte_ends_at_the_idle_timeout() {
    let server = silent();
    let rules = ["http://example.org"];
    let proxy = Setup::new(server.address)
        .rules(&rules)
        .limits(|limits| limits.idle = std::time::Duration::from_millis(200))
        .start();
    assert_eq!(ask(&proxy, GET), "");
    proxy.until(|counts| counts.open == 0 && counts.cut.get(&Cut::Idle) == Some(&1));
}

#[test]
fn the_byte_quota_holds_for_plain_requests_and_responses() {
    let server = web(FINE);
    let rules = ["http://example.org"];
    let request =
        u64::try_from("GET / HTTP/1.1\r\nhost: example.org\r\nconnection: close\r\n\r\n".len()).unwrap();
    for (quota, came) in [(request - 1, 0), (request + 5, request)] {
        let proxy = Setup::new(server.address).rules(&rules).limits(|limits| limits.bytes = quota).start();
        assert!(!ask(&proxy, GET).contains("hello"));
        let counts = proxy.until(|counts| counts.open == 0 && counts.cut.get(&Cut::Bytes) == Some(&1));
        assert_eq!((counts.bytes_out, counts.bytes_in), (came, 0));
        assert!(ask(&proxy, GET).contains("byte_quota"));
    }
}
