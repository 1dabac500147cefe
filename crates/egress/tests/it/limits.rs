//! Limits: of time, of tunnels, of bytes, of requests.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use herma_egress::EgressVerdict::{Allowed, Denied, Failed};
use herma_egress::addresses::Target;
use herma_egress::proxy::{Connect, ConnectError, Cut};
use herma_egress::resolver::{BoxFuture, Resolve};
use herma_egress::{Fault, Name, Reason};
use tokio::net::TcpStream;

use super::client::{Client, connect, refused, tunnel};
use super::hellos::Hello;
use super::kit::{HOST, Setup};
use super::server::{Server, echo};

const SHORT: Duration = Duration::from_millis(100);

/// Nobody ever answers at these addresses; the others lead to a server.
struct Silent {
    at: Vec<SocketAddr>,
    to: SocketAddr,
}

impl Connect for Silent {
    fn connect(&self, target: Target) -> BoxFuture<'_, Result<TcpStream, ConnectError>> {
        Box::pin(async move {
            if self.at.contains(&target.address()) {
                std::future::pending::<()>().await;
            }
            // Not at once, so that it needs time of its own.
            tokio::time::sleep(SHORT).await;
            Ok(TcpStream::connect(self.to).await?)
        })
    }
}

/// Says that every address is this machine's.
struct Own;

impl Connect for Own {
    fn connect(&self, target: Target) -> BoxFuture<'_, Result<TcpStream, ConnectError>> {
        Box::pin(async move { Err(ConnectError::Own(target.address().ip())) })
    }
}

struct SilentResolver;

impl Resolve for SilentResolver {
    fn resolve<'a>(&'a self, _: &'a Name) -> BoxFuture<'a, std::io::Result<Vec<std::net::IpAddr>>> {
        Box::pin(std::future::pending())
    }
}

fn silent(names: &[&str], at: &[&str], to: &Server) -> Setup {
    let mut setup =
        Setup::new(to.address).names(&[(HOST, names)]).limits(|limits| limits.connect = 4 * SHORT);
    let at = at.iter().map(|address| SocketAddr::new(address.parse().unwrap(), 443)).collect();
    setup.connector = Some(Arc::new(Silent { at, to: to.address }));
    setup
}

#[test]
fn a_connection_that_is_not_taken_in_time_fails() {
    let server = echo();
    let proxy = silent(&["8.8.8.8"], &["8.8.8.8"], &server).start();
    let began = Instant::now();
    let answer = refused(&proxy, "example.org:443");
    assert!(answer.starts_with("HTTP/1.1 504 ") && answer.contains("slow_connect"), "{answer}");
    assert!(began.elapsed() >= 4 * SHORT);
    assert_eq!(proxy.verdicts(), [Failed(Fault::SlowConnect)]);
    proxy.until(|counts| counts.open == 0);
}

#[test]
fn an_address_that_is_silent_leaves_time_for_the_next() {
    let server = echo();
    let setup = silent(&["8.8.8.8", "8.8.4.4"], &["8.8.8.8"], &server);
    let proxy = setup.limits(|limits| limits.connect = 30 * SHORT).start();
    let (mut client, hello) = tunnel(&proxy, HOST);
    assert_eq!(client.exactly(hello.len()), hello);
    assert_eq!(proxy.decided()[0].address, Some("8.8.4.4:443".parse().unwrap()));
}

#[test]
fn a_resolver_that_is_silent_fails_the_request() {
    let server = echo();
    let mut setup = Setup::new(server.address).limits(|limits| limits.resolve = SHORT);
    setup.resolver = Arc::new(SilentResolver);
    let proxy = setup.start();
    assert!(refused(&proxy, "example.org:443").starts_with("HTTP/1.1 504 "));
    assert_eq!(proxy.verdicts(), [Failed(Fault::SlowResolver)]);
}

#[test]
fn this_machines_own_public_address_is_denied() {
    let server = echo();
    let mut setup = Setup::new(server.address);
    setup.connector = Some(Arc::new(Own));
    let proxy = setup.start();
    let answer = refused(&proxy, "example.org:443");
    assert!(answer.starts_with("HTTP/1.1 403 ") && answer.contains("own_address"), "{answer}");
    assert_eq!(proxy.verdicts(), [Denied(Reason::OwnAddress)]);
}

#[test]
fn a_head_that_drips_is_cut_off_and_others_are_served_meanwhile() {
    let server = echo();
    let proxy = Setup::new(server.address).limits(|limits| limits.head = 3 * SHORT).start();
    let mut dripping: Vec<Client> = (0..40).map(|_| Client::new(&proxy)).collect();
    for client in &mut dripping {
        client.send("CONNECT example.org:443 HTTP/1.1\r\nHost: example.org\r\nx: ");
    }
    let (mut client, hello) = tunnel(&proxy, HOST);
    assert_eq!(client.exactly(hello.len()), hello);
    for client in &mut dripping {
        let answer = client.rest_as_text();
        assert!(answer.starts_with("HTTP/1.1 408 ") && answer.contains("slow_request"), "{answer}");
    }
    proxy.until(|counts| counts.denied.get(&Reason::SlowRequest) == Some(&40));
}

#[test]
fn a_head_that_only_a_careless_reader_would_see_the_end_of_is_refused_at_once() {
    let server = echo();
    let proxy = Setup::new(server.address).limits(|limits| limits.head = Duration::MAX).start();
    let mut client = Client::new(&proxy);
    client.send("CONNECT example.org:443 HTTP/1.1\nHost: example.org\n\n");
    assert!(client.rest_as_text().contains("does not end with CR LF"));
}

#[test]
fn dripping_bytes_do_not_lengthen_the_time_for_a_head() {
    let server = echo();
    let proxy = Setup::new(server.address).limits(|limits| limits.head = 3 * SHORT).start();
    let mut client = Client::new(&proxy);
    client.0.set_nonblocking(true).unwrap();
    client.send("CONNECT example.org:443 HTTP/1.1\r\n");
    let mut dripped = 0;
    let deadline = Instant::now() + super::kit::WAIT_TIMEOUT;
    while proxy.verdicts().is_empty() {
        assert!(Instant::now() < deadline, "it still listens");
        // It may have been closed between the look and the drop.
        let _ = std::io::Write::write_all(&mut client.0, b"x");
        dripped += 1;
        std::thread::sleep(SHORT / 10);
    }
    assert!(dripped > 1);
    assert_eq!(proxy.verdicts(), [Denied(Reason::SlowRequest)]);
}

#[test]
fn connections_that_ask_nothing_make_room_for_those_that_do() {
    let server = echo();
    let proxy =
        Setup::new(server.address).limits(|limits| (limits.head, limits.tunnels) = (3 * SHORT, 4)).start();
    let idle: Vec<Client> = (0..200).map(|_| Client::new(&proxy)).collect();
    let (mut client, hello) = tunnel(&proxy, HOST);
    assert_eq!(client.exactly(hello.len()), hello);
    drop(idle);
}

#[test]
fn a_hello_that_drips_is_cut_off() {
    let server = echo();
    let proxy = Setup::new(server.address).limits(|limits| limits.hello = 2 * SHORT).start();
    let (mut client, _) = connect(&proxy, "example.org:443");
    client.send(&Hello::of(HOST).bytes()[..20]);
    assert_eq!(client.rest(), b"");
    assert_eq!((proxy.verdicts(), server.came()), (vec![Denied(Reason::SlowHello)], Vec::new()));
}

#[test]
fn a_tunnel_without_a_byte_ends_and_one_with_bytes_does_not() {
    let server = echo();
    let proxy = Setup::new(server.address).limits(|limits| limits.idle = 5 * SHORT).start();
    let (mut busy, hello) = tunnel(&proxy, HOST);
    busy.exactly(hello.len());
    let (mut idle, hello) = tunnel(&proxy, HOST);
    idle.exactly(hello.len());
    let began = Instant::now();
    while began.elapsed() < 12 * SHORT {
        busy.send("x");
        busy.exactly(1);
        std::thread::sleep(SHORT / 4);
    }
    assert_eq!(idle.rest(), b"");
    busy.send("y");
    assert_eq!(busy.exactly(1), b"y");
    let counts = proxy.until(|counts| counts.cut.contains_key(&Cut::Idle));
    assert_eq!((counts.open, counts.cut[&Cut::Idle]), (1, 1));
}

#[test]
fn a_tunnel_ends_at_its_lifetime_however_busy_it_is() {
    let server = echo();
    let proxy = Setup::new(server.address).limits(|limits| limits.lifetime = 5 * SHORT).start();
    let (mut client, _) = tunnel(&proxy, HOST);
    client.0.set_nonblocking(true).unwrap();
    let deadline = Instant::now() + super::kit::WAIT_TIMEOUT;
    while proxy.handle.counts().cut.is_empty() {
        assert!(Instant::now() < deadline);
        let _ = std::io::Write::write(&mut client.0, b"x");
        std::thread::sleep(SHORT / 10);
    }
    assert_eq!(proxy.handle.counts().cut[&Cut::Lifetime], 1);
}

#[test]
fn limits_without_end_do_not_break_the_clock() {
    let server = echo();
    let proxy = Setup::new(server.address)
        .limits(|limits| {
            limits.idle = Duration::MAX;
            limits.lifetime = Duration::MAX;
            limits.connect = Duration::MAX;
            limits.head = Duration::MAX;
        })
        .start();
    let (mut client, hello) = tunnel(&proxy, HOST);
    assert_eq!(client.exactly(hello.len()), hello);
}

#[test]
fn tunnels_beyond_the_quota_are_denied_until_one_ends() {
    let server = echo();
    let proxy = Setup::new(server.address).limits(|limits| limits.tunnels = 3).start();
    let mut open: Vec<_> = (0..3).map(|_| tunnel(&proxy, HOST)).collect();
    for (client, hello) in &mut open {
        client.exactly(hello.len());
    }
    let answer = refused(&proxy, "example.org:443");
    assert!(answer.starts_with("HTTP/1.1 503 ") && answer.contains("tunnel_quota"), "{answer}");
    assert_eq!(proxy.handle.counts().open, 3);
    drop(open.pop());
    proxy.until(|counts| counts.open == 2);
    let (mut client, hello) = tunnel(&proxy, HOST);
    assert_eq!(client.exactly(hello.len()), hello);
}

#[test]
fn the_quota_of_bytes_is_for_the_whole_run() {
    let server = echo();
    let hello = u64::try_from(Hello::of(HOST).bytes().len()).unwrap();
    let proxy = Setup::new(server.address).limits(|limits| limits.bytes = 2 * hello + 10).start();
    let (mut client, sent) = tunnel(&proxy, HOST);
    client.exactly(sent.len());
    client.send("12345");
    assert_eq!(client.exactly(5), b"12345");
    client.send("6");
    assert_eq!(client.rest(), b"", "there is no byte left");
    let answer = refused(&proxy, "example.org:443");
    assert!(answer.starts_with("HTTP/1.1 403 ") && answer.contains("byte_quota"), "{answer}");
    let counts = proxy.until(|counts| counts.cut.get(&Cut::Bytes) == Some(&1));
    assert_eq!((counts.open, counts.bytes_out + counts.bytes_in), (0, 2 * hello + 10));
    assert_eq!(server.came().len(), sent.len() + 5);
}

#[test]
fn a_run_that_asked_for_more_bytes_than_are_left_gets_none_of_them() {
    let server = echo();
    let hello = u64::try_from(Hello::of(HOST).bytes().len()).unwrap();
    let proxy = Setup::new(server.address).limits(|limits| limits.bytes = 2 * hello + 10).start();
    let (mut client, sent) = tunnel(&proxy, HOST);
    client.exactly(sent.len());
    client.send("more than ten bytes");
    assert_eq!(client.rest(), b"");
    assert!(
        refused(&proxy, "example.org:443").contains("byte_quota"),
        "what was left is not dealt out in crumbs"
    );
    assert_eq!(server.came(), sent);
}

#[test]
fn requests_beyond_the_quota_are_denied_and_recorded_once() {
    let server = echo();
    let proxy = Setup::new(server.address).limits(|limits| limits.requests = 3).start();
    for _ in 0..3 {
        assert!(refused(&proxy, "other.example:443").contains("not_listed"));
    }
    for _ in 0..5 {
        assert!(refused(&proxy, "example.org:443").contains("request_quota"));
    }
    let quota = Denied(Reason::RequestQuota);
    let unlisted = Denied(Reason::NotListed);
    assert_eq!(proxy.verdicts(), [unlisted, unlisted, unlisted, quota]);
    assert_eq!(proxy.handle.counts().denied[&Reason::RequestQuota], 5);
}

#[test]
fn a_thousand_tunnels_are_open_at_once_and_each_has_its_own_bytes() {
    const TUNNELS: usize = 1_000;
    raise_open_files();
    let server = echo();
    let proxy = Setup::new(server.address).limits(|limits| limits.tunnels = TUNNELS).start();
    let mut open: Vec<_> = (0..TUNNELS).map(|_| tunnel(&proxy, HOST)).collect();
    for (at, (client, hello)) in open.iter_mut().enumerate() {
        assert_eq!(client.exactly(hello.len()), *hello);
        client.send(format!("tunnel {at:04}"));
    }
    assert_eq!(proxy.handle.counts().open, TUNNELS);
    for (at, (client, _)) in open.iter_mut().enumerate() {
        assert_eq!(client.exactly(11), format!("tunnel {at:04}").as_bytes());
    }
    assert!(refused(&proxy, "example.org:443").contains("tunnel_quota"));
    assert_eq!(server.connections.load(Ordering::SeqCst), TUNNELS);
    drop(open);
    let counts = proxy.until(|counts| counts.open == 0);
    assert_eq!(counts.allowed, u64::try_from(TUNNELS).unwrap());
    assert_eq!(proxy.verdicts().iter().filter(|verdict| **verdict == Allowed).count(), TUNNELS);
}

/// Four ends of connections for each tunnel are in this one process.
fn raise_open_files() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).unwrap();
    assert!(maximum.is_none_or(|most| most > 4_200), "this test needs 4,200 open files: raise `ulimit -Hn`");
}
