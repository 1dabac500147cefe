//! Tunnels: what passes, what does not, and that nothing passes before it was decided.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use herma_egress::EgressVerdict::{Allowed, Denied, Failed};
use herma_egress::proxy::{Listen, Options, Service, StartError};
use herma_egress::{DecisionRecorder, Fault, ProxyDecision, Reason, Unrecorded};

use super::client::{Client, connect, refused, tunnel};
use super::hellos::{ENCRYPTED, Hello};
use super::kit::{HOST, Notes, PUBLIC, Setup, WAIT_TIMEOUT};
use super::server::{after_the_end, echo, ends_first};

#[test]
fn a_listed_host_is_reached_at_the_address_that_was_checked() {
    let server = echo();
    let proxy = Setup::new(server.address).start();
    let (mut client, hello) = tunnel(&proxy, HOST);
    assert_eq!(client.exactly(hello.len()), hello);
    client.send("and more");
    assert_eq!(client.exactly(8), b"and more");
    let address = format!("{PUBLIC}:443").parse().unwrap();
    assert_eq!(*proxy.leads.asked.lock().unwrap(), [address]);
    let decided = ProxyDecision {
        request: 1,
        method: "CONNECT".to_owned(),
        host: HOST.to_owned(),
        port: 443,
        verdict: Allowed,
        rule: Some(HOST.to_owned()),
        address: Some(address),
        detail: String::new(),
    };
    assert_eq!(proxy.decided(), [decided]);
    drop(client);
    let counts = proxy.until(|counts| counts.open == 0);
    let bytes = u64::try_from(hello.len() + 8).unwrap();
    assert_eq!((counts.allowed, counts.bytes_out, counts.bytes_in), (1, bytes, bytes));
    assert_eq!(counts.all_denied(), 0);
}

#[test]
fn an_unlisted_host_is_denied_with_a_reason_and_a_next_step() {
    let server = echo();
    let proxy = Setup::new(server.address).start();
    let rows = [
        ("other.example:443", Reason::NotListed),
        ("a.example.org:443", Reason::NotListed),
        ("example.org:444", Reason::PortNotListed),
        ("8.8.8.8:443", Reason::NotListed),
    ];
    for (place, reason) in rows {
        let answer = refused(&proxy, place);
        let first = format!("HTTP/1.1 403 Forbidden (herma egress: {})\r\n", reason.code());
        assert!(answer.starts_with(&first), "{answer}");
        let body =
            format!("herma egress denied CONNECT {place}: {}. {}\n", reason.code(), reason.next_step());
        assert!(answer.ends_with(&body), "{answer}");
        assert_eq!(proxy.verdicts().last(), Some(&Denied(reason)));
    }
    // A host that no list could allow is denied without the advice to list it.
    for place in ["127.0.0.1:443", "10.0.0.1:443"] {
        let answer = refused(&proxy, place);
        assert!(
            answer.ends_with(&format!(" address). {}\n", Reason::PrivateAddress.next_step())),
            "{answer}"
        );
        assert_eq!(proxy.verdicts().last(), Some(&Denied(Reason::PrivateAddress)));
    }
    assert_eq!(server.connections.load(Ordering::SeqCst), 0);
    assert_eq!(proxy.handle.counts().denied[&Reason::NotListed], 3);
}

#[test]
fn no_byte_reaches_the_server_unless_the_sni_names_the_host() {
    let server = echo();
    let proxy = Setup::new(server.address).start();
    let rows: Vec<(Vec<u8>, Reason, &[u8])> = vec![
        (Hello::of("evil.example").bytes(), Reason::OtherName, &[21, 3, 1, 0, 2, 2, 112]),
        (Hello::silent().bytes(), Reason::NoName, &[21, 3, 1, 0, 2, 2, 112]),
        (
            Hello::of(HOST).with(ENCRYPTED, vec![0; 90]).bytes(),
            Reason::EncryptedHello,
            &[21, 3, 1, 0, 2, 2, 40],
        ),
        (Hello::of(HOST).with(0, vec![]).bytes(), Reason::BadClientHello, &[21, 3, 1, 0, 2, 2, 40]),
        (b"GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n".to_vec(), Reason::NotTls, b""),
        (b"SSH-2.0-OpenSSH_9.2\r\n".to_vec(), Reason::NotTls, b""),
    ];
    for (bytes, reason, alert) in rows {
        let (mut client, head) = connect(&proxy, &format!("{HOST}:443"));
        assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
        client.send(&bytes);
        assert_eq!(client.rest(), alert, "{reason:?}");
        assert_eq!(proxy.verdicts().last(), Some(&Denied(reason)));
    }
    assert_eq!(server.came(), b"");
    assert_eq!(proxy.handle.counts().bytes_out, 0);
}

#[test]
fn a_client_hello_in_many_small_records_passes_unchanged() {
    let server = echo();
    let proxy = Setup::new(server.address).start();
    let (mut client, _) = connect(&proxy, &format!("{HOST}:443"));
    client.0.set_nodelay(true).unwrap();
    let hello = Hello::of(HOST).in_records(3);
    for part in hello.chunks(7) {
        client.send(part);
    }
    assert_eq!(client.exactly(hello.len()), hello);
}

#[test]
fn an_address_that_is_listed_is_reached_without_a_name() {
    let server = echo();
    let proxy = Setup::new(server.address).rules(&["8.8.8.8", "[2606:4700::1111]"]).start();
    for place in ["8.8.8.8:443", "[2606:4700::1111]:443"] {
        let (mut client, head) = connect(&proxy, place);
        assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
        let hello = Hello::silent().bytes();
        client.send(&hello);
        assert_eq!(client.exactly(hello.len()), hello);
    }
    let (mut client, _) = connect(&proxy, "8.8.8.8:443");
    client.send(Hello::of("evil.example").bytes());
    client.rest();
    assert_eq!(proxy.verdicts(), [Allowed, Allowed, Denied(Reason::OtherName)]);
}

#[test]
fn where_a_decision_cannot_be_recorded_nothing_passes() {
    let server = echo();
    let mut setup = Setup::new(server.address);
    setup.notes = Arc::new(Notes { room: Some(0), ..Notes::default() });
    let proxy = setup.start();
    let (mut client, _) = tunnel(&proxy, HOST);
    assert_eq!(client.rest(), [21, 3, 1, 0, 2, 2, 40]);
    let answer = refused(&proxy, "other.example:443");
    assert!(answer.starts_with("HTTP/1.1 503 ") && answer.contains("the disk is full"), "{answer}");
    assert_eq!(server.came(), b"");
    let counts = proxy.handle.counts();
    assert_eq!((counts.allowed, counts.denied[&Reason::Unrecorded]), (0, 2));
}

#[test]
fn a_half_close_is_forwarded_and_the_other_direction_goes_on() {
    let server = after_the_end("heard it all");
    let proxy = Setup::new(server.address).start();
    let (mut client, hello) = tunnel(&proxy, HOST);
    client.send("the last words");
    client.end_half();
    assert_eq!(client.rest(), b"heard it all");
    assert_eq!(server.came(), [&hello[..], b"the last words"].concat());

    let server = ends_first();
    let proxy = Setup::new(server.address).start();
    let (mut client, hello) = tunnel(&proxy, HOST);
    assert_eq!(client.rest(), b"bye");
    client.send("still here");
    client.end_half();
    let counts = proxy.until(|counts| counts.open == 0);
    assert_eq!(server.came(), [&hello[..], b"still here"].concat());
    assert!(counts.cut.is_empty(), "{counts:?}");
}

#[test]
fn a_client_that_leaves_before_its_hello_leaves_no_tunnel() {
    let server = echo();
    let proxy = Setup::new(server.address).start();
    let (client, _) = connect(&proxy, &format!("{HOST}:443"));
    drop(client);
    proxy.until(|counts| counts.open == 0);
    assert_eq!(proxy.verdicts(), [Failed(Fault::ClientLeft)]);
    assert_eq!(server.came(), b"");
}

#[test]
fn a_list_that_is_replaced_counts_from_the_next_request_on() {
    let server = echo();
    let proxy = Setup::new(server.address).start();
    let (mut client, hello) = tunnel(&proxy, HOST);
    client.exactly(hello.len());
    proxy.handle.replace(herma_egress::Allowlist::default());
    assert!(refused(&proxy, "example.org:443").contains("not_listed"));
    client.send("still open");
    assert_eq!(client.exactly(10), b"still open");
}

#[test]
fn ending_the_proxy_ends_its_tunnels() {
    let server = echo();
    let proxy = Setup::new(server.address).start();
    let (mut client, hello) = tunnel(&proxy, HOST);
    client.exactly(hello.len());
    let port = proxy.port;
    let ended = proxy.handle.end();
    assert_eq!((ended.counts.allowed, ended.learned.len()), (1, 0));
    assert_eq!(client.rest(), b"");
    assert!(TcpStream::connect(("127.0.0.1", port)).is_err());
}

/// Blocks in the recorder until the test lets it go on.
struct Slow {
    began: Mutex<Sender<()>>,
    go_on: Mutex<Receiver<()>>,
}

impl DecisionRecorder for Slow {
    fn decided(&self, _: &ProxyDecision) -> Result<(), Unrecorded> {
        self.began.lock().unwrap().send(()).unwrap();
        self.go_on.lock().unwrap().recv().map_err(|gone| Unrecorded(gone.to_string()))
    }
}

#[test]
fn the_end_waits_for_a_decision_that_is_being_recorded() {
    let server = echo();
    let setup = Setup::new(server.address);
    let ((began, has_begun), (goes_on, go_on)) = (channel(), channel());
    let watch = Arc::new(Slow { began: Mutex::new(began), go_on: Mutex::new(go_on) });
    let handle = Service::start(Options { recorder: watch, ..setup.options() }).unwrap();
    let Listen::Loopback(port) = handle.listen(&Listen::Loopback(0)).unwrap() else { panic!("it is a port") };
    let mut client = TcpStream::connect(("127.0.0.1", port)).unwrap();
    client.write_all(b"CONNECT other.example:443 HTTP/1.1\r\nHost: other.example\r\n\r\n").unwrap();
    has_begun.recv_timeout(WAIT_TIMEOUT).unwrap();
    let ending = std::thread::spawn(move || handle.end());
    std::thread::sleep(Duration::from_secs(1));
    assert!(!ending.is_finished(), "a decision would be recorded after the end");
    goes_on.send(()).unwrap();
    assert_eq!(ending.join().unwrap().counts.all_denied(), 1);
}

#[test]
fn a_client_that_is_still_sending_gets_to_read_its_refusal() {
    let server = echo();
    let proxy = Setup::new(server.address).start();
    let mut client = Client::new(&proxy);
    client.send("CONNECT other.example:443 HTTP/1.1\r\nHost: other.example\r\n\r\n");
    proxy.until(|counts| counts.all_denied() == 1);
    for _ in 0..3 {
        std::thread::sleep(Duration::from_millis(20));
        client.send([7; 1 << 10]);
    }
    client.end_half();
    let mut answer = String::new();
    client.0.read_to_string(&mut answer).unwrap();
    assert!(answer.contains("not_listed"), "{answer}");
}

#[test]
fn a_unix_socket_is_for_its_owner_and_gone_at_the_end() {
    let server = echo();
    let setup = Setup::new(server.address);
    let handle = Service::start(setup.options()).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("egress.sock");
    let bound = handle.listen(&Listen::Unix(path.clone())).unwrap();
    assert_eq!(bound, Listen::Unix(path.clone()));
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    let again = handle.listen(&Listen::Unix(path.clone()));
    assert!(matches!(again, Err(StartError::Listen { .. })), "somebody listens there");
    let mut client = UnixStream::connect(&path).unwrap();
    let hello = Hello::of(HOST).bytes();
    client.write_all(format!("CONNECT {HOST}:443 HTTP/1.1\r\nHost: {HOST}\r\n\r\n").as_bytes()).unwrap();
    client.write_all(&hello).unwrap();
    client.shutdown(std::net::Shutdown::Write).unwrap();
    let mut all = Vec::new();
    client.read_to_end(&mut all).unwrap();
    assert_eq!(all, [b"HTTP/1.1 200 Connection established\r\n\r\n", &hello[..]].concat());
    let _ = handle.end();
    assert!(!path.exists());
}

#[test]
fn a_socket_that_nobody_listens_on_is_taken_over_and_a_file_is_not() {
    let server = echo();
    let setup = Setup::new(server.address);
    let handle = Service::start(setup.options()).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let dead = dir.path().join("dead.sock");
    drop(std::os::unix::net::UnixListener::bind(&dead).unwrap());
    assert!(handle.listen(&Listen::Unix(dead)).is_ok());
    let file = dir.path().join("file");
    std::fs::write(&file, "kept").unwrap();
    assert!(handle.listen(&Listen::Unix(file.clone())).is_err());
    assert_eq!(std::fs::read_to_string(file).unwrap(), "kept");
}

#[test]
fn bytes_that_come_before_the_answer_to_connect_are_judged_too() {
    let server = echo();
    let proxy = Setup::new(server.address).start();
    let mut client = Client::new(&proxy);
    let evil = Hello::of("evil.example").bytes();
    client.send([format!("CONNECT {HOST}:443 HTTP/1.1\r\nHost: {HOST}\r\n\r\n").as_bytes(), &evil].concat());
    client.rest();
    assert_eq!((proxy.verdicts(), server.came()), (vec![Denied(Reason::OtherName)], Vec::new()));
    // A second request behind the CONNECT is no request, and no TLS.
    let mut client = Client::new(&proxy);
    let connect = format!("CONNECT {HOST}:443 HTTP/1.1\r\nHost: {HOST}\r\n\r\n");
    client.send(connect.repeat(2));
    assert_eq!(client.rest_as_text().matches("HTTP/1.1 ").count(), 1);
    assert_eq!(proxy.verdicts().last(), Some(&Denied(Reason::NotTls)));
    assert_eq!(server.came(), b"");
}

#[test]
fn decisions_are_written_with_one_word_for_each_thing() {
    let server = echo();
    let proxy = Setup::new(server.address).start();
    let (mut client, hello) = tunnel(&proxy, HOST);
    client.exactly(hello.len());
    refused(&proxy, "other.example:443");
    let written = serde_json::to_value(proxy.decided()).unwrap();
    let expected = serde_json::json!([
        {"request": 1, "method": "CONNECT", "host": "example.org", "port": 443, "verdict": "allowed",
         "rule": "example.org", "address": "93.184.216.34:443"},
        {"request": 2, "method": "CONNECT", "host": "other.example", "port": 443, "verdict": "denied",
         "reason": "not_listed"},
    ]);
    assert_eq!(written, expected);
}

#[test]
fn the_words_in_answers_and_in_records_are_the_same() {
    for reason in [Reason::NotListed, Reason::PrivateAddress, Reason::EncryptedHello, Reason::Unrecorded] {
        assert_eq!(serde_json::to_value(reason).unwrap(), reason.code());
    }
    for fault in [Fault::Unresolved, Fault::SlowConnect, Fault::ClientLeft] {
        assert_eq!(serde_json::to_value(fault).unwrap(), fault.code());
    }
}
