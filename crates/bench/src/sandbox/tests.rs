//! The figures and the targets, and the proxy as it is measured.

use std::ffi::OsString;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use super::egress::{OURS, SOCAT, hello};
use super::figures::{SandboxRow, judge};
use super::starts::{ALL_PROBES, BARE, DOCKER, SANDBOX, SANDBOX_RUNTIME};
use super::{source, tunnel};
use crate::child::free_port;

fn row(name: &str, ms: f64) -> SandboxRow {
    SandboxRow { name: name.to_owned(), p50_ms: ms, cpu_ms_per_gib: Some(ms), ..SandboxRow::default() }
}

fn judged(rows: &[SandboxRow]) -> Vec<(Option<f64>, Option<bool>)> {
    judge(rows).into_iter().map(|target| (target.value, target.holds)).collect()
}

#[test]
fn each_target_is_judged_against_its_own_peer() {
    let rows = [
        row(BARE, 6.0),
        row(SANDBOX, 15.0),
        row(ALL_PROBES, 99.0),
        row(SANDBOX_RUNTIME, 400.0),
        row(DOCKER, 300.0),
        row(SOCAT, 100.0),
        row(OURS, 128.0),
    ];
    assert_eq!(
        judged(&rows),
        [
            (Some(2.5), Some(true)),
            (Some(0.25), Some(true)),
            (Some(0.33), Some(false)),
            (Some(1.28), Some(false)),
            (Some(1.28), Some(true)),
        ]
    );
}

#[test]
fn without_its_peer_a_target_is_not_judged_and_never_holds() {
    assert!(judged(&[]).iter().all(|judged| *judged == (None, None)));
    let alone = [row(SANDBOX, 1.0), row(ALL_PROBES, 1.0), row(OURS, 1.0), row(BARE, 0.0), row(SOCAT, 0.0)];
    assert!(judged(&alone).iter().all(|judged| *judged == (None, None)));
}

#[test]
fn bytes_are_counted_by_the_gib_and_starts_have_no_such_figures() {
    let times = [Duration::from_millis(100), Duration::from_millis(100), Duration::from_millis(700)];
    let carried = SandboxRow::carried("x", 256 << 20, &times, &[Duration::from_millis(50)]);
    assert_eq!(
        carried,
        SandboxRow {
            name: "x".to_owned(),
            p50_ms: 400.0,
            p95_ms: 2800.0,
            mib_per_s: Some(2560.0),
            cpu_ms_per_gib: Some(200.0),
        }
    );
    let started = SandboxRow::start("x", &times);
    assert_eq!((started.p50_ms, started.p95_ms, started.mib_per_s), (100.0, 700.0, None));
}

fn connected(at: SocketAddr) -> TcpStream {
    let until = Instant::now() + Duration::from_secs(20);
    loop {
        if let Ok(stream) = TcpStream::connect(at) {
            stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
            return stream;
        }
        assert!(Instant::now() < until, "nobody listens at {at}");
        thread::sleep(Duration::from_millis(5));
    }
}

fn through(at: SocketAddr, host: &str, says: &[u8]) -> Vec<u8> {
    let mut stream = connected(at);
    stream.write_all(format!("CONNECT {host}:443 HTTP/1.1\r\nHost: {host}\r\n\r\n").as_bytes()).unwrap();
    stream.write_all(says).unwrap();
    let mut said = vec![0; 4096];
    let _ = stream.read_exact(&mut said);
    said
}

#[test]
fn what_is_measured_is_the_proxy_with_its_checks() {
    let (from, at) = (free_port().unwrap(), free_port().unwrap());
    let words = |words: &[String]| words.iter().map(OsString::from).collect::<Vec<_>>().into_iter();
    let (source_words, tunnel_words) =
        (words(&[from.port().to_string()]), words(&[at.port().to_string(), from.to_string()]));
    // Both serve until the test process ends.
    thread::spawn(move || drop(source::run(source_words)));
    thread::spawn(move || drop(tunnel::run(tunnel_words)));
    drop(connected(from));
    let zeros = |said: &[u8]| said.starts_with(b"HTTP/1.1 200") && said.ends_with(&[0; 1024]);
    assert!(zeros(&through(at, tunnel::HOST, &hello(tunnel::HOST))));
    let unlisted = through(at, "other.example", &hello("other.example"));
    assert!(unlisted.starts_with(b"HTTP/1.1 403"), "{}", String::from_utf8_lossy(&unlisted));
    let mut fronted = connected(at);
    fronted.write_all(b"CONNECT example.org:443 HTTP/1.1\r\nHost: example.org\r\n\r\n").unwrap();
    fronted.write_all(&hello("other.example")).unwrap();
    let mut said = Vec::new();
    let _ = fronted.read_to_end(&mut said);
    assert!(said.len() < 4096, "a hello for another host opened the tunnel: {} bytes", said.len());
}
