//! The metrics that an operator can read while a proxy runs.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;

use herma_egress::proxy::Listen;

use crate::client::{Client, refused, tunnel};
use crate::kit::{HOST, Setup};
use crate::server::echo;

fn ask(socket: &Path, request: &str) -> String {
    let mut operator = UnixStream::connect(socket).unwrap();
    operator.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    operator.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn an_operator_reads_every_decision_open_tunnels_and_bytes() {
    let server = echo();
    let proxy = Setup::new(server.address).limits(|limits| limits.tunnels = 1).start();
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("metrics.sock");
    proxy.handle.listen_for_operator(&Listen::Unix(socket.clone())).unwrap();
    let (mut client, hello) = tunnel(&proxy, HOST);
    client.exactly(hello.len());
    refused(&proxy, "other.example:443");
    refused(&proxy, "other.example:443");
    refused(&proxy, "10.0.0.1:443");
    // All of the proxy's room is taken, and the operator is answered all the same.
    assert!(refused(&proxy, &format!("{HOST}:443")).contains("tunnel_quota"));
    let bytes = hello.len();
    proxy.until(|counts| counts.bytes_in == bytes as u64);

    let answer = ask(&socket, "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
    let (head, text) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200 OK\r\ncontent-type: application/openmetrics-text;"), "{head}");
    let mut seen: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
    seen.sort_unstable();
    let [bytes_in, bytes_out] =
        ["in", "out"].map(|way| format!("herma_egress_bytes_total{{direction=\"{way}\"}} {bytes}"));
    let expected = [
        &bytes_in,
        &bytes_out,
        "herma_egress_decisions_total{verdict=\"allowed\"} 1",
        "herma_egress_decisions_total{verdict=\"denied\",reason=\"not_listed\"} 2",
        "herma_egress_decisions_total{verdict=\"denied\",reason=\"private_address\"} 1",
        "herma_egress_decisions_total{verdict=\"denied\",reason=\"tunnel_quota\"} 1",
        "herma_egress_tunnels_open 1",
    ];
    assert_eq!(seen, expected);
    assert!(text.ends_with("# EOF\n"), "{text}");

    drop(client);
    proxy.until(|counts| counts.open == 0);
    assert!(ask(&socket, "GET /metrics HTTP/1.1\r\n\r\n").contains("herma_egress_tunnels_open 0\n"));
}

#[test]
fn there_is_nothing_else_for_the_operator_and_no_metrics_for_a_client() {
    let server = echo();
    let proxy = Setup::new(server.address).start();
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("metrics.sock");
    proxy.handle.listen_for_operator(&Listen::Unix(socket.clone())).unwrap();
    for (request, status) in [
        ("GET / HTTP/1.1", "404 Not Found"),
        ("POST /metrics HTTP/1.1", "404 Not Found"),
        ("CONNECT example.org:443 HTTP/1.1", "404 Not Found"),
        ("nonsense", "400 Bad Request"),
    ] {
        let answer = ask(&socket, &format!("{request}\r\n\r\n"));
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}\r\n")), "{request}: {answer}");
    }
    assert_eq!(proxy.decided(), []);
    let mut client = Client::new(&proxy);
    client.send("GET /metrics HTTP/1.1\r\nHost: example.org\r\n\r\n".as_bytes());
    let answer = String::from_utf8(client.rest()).unwrap();
    assert!(answer.starts_with("HTTP/1.1 400 ") && !answer.contains("decisions"), "{answer}");
    assert!(proxy.handle.metrics().contains("{verdict=\"denied\",reason=\"bad_request\"} 1\n"));
    let _ = proxy.handle.end();
    assert!(!socket.exists(), "it goes with the proxy");
}
