//! The mode `learn`: it relaxes the list, writes down what it let through, and relaxes nothing else.

use herma_egress::EgressVerdict::{Allowed, Denied};
use herma_egress::proxy::Mode;
use herma_egress::{Allowlist, Reason};

use super::client::{ask, connect, refused, tunnel};
use super::hellos::Hello;
use super::kit::{Proxy, Setup};
use super::server::{echo, web};

fn learning(server: std::net::SocketAddr) -> Setup {
    let public: &[&str] = &["93.184.216.34"];
    let names = [
        ("example.org", public),
        ("a.example", public),
        ("b.example", public),
        ("in.example", &["10.0.0.1"]),
    ];
    let mut setup = Setup::new(server).names(&names);
    setup.mode = Mode::Learn;
    setup
}

fn learned(proxy: &Proxy) -> Vec<String> {
    proxy.handle.learned().into_iter().collect()
}

#[test]
fn an_unlisted_host_passes_in_learn_mode_and_becomes_a_proposal() {
    let server = web("HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    let proxy = learning(server.address).start();
    drop(tunnel(&proxy, "example.org"));
    drop(tunnel(&proxy, "a.example"));
    drop(tunnel(&proxy, "a.example"));
    ask(&proxy, "POST http://b.example:8080/ HTTP/1.1\r\nHost: b.example:8080\r\n\r\n");
    proxy.until(|counts| counts.allowed == 4);
    assert_eq!(learned(&proxy), ["POST http://b.example:8080", "a.example"]);
    let rules: Vec<Option<String>> = proxy.decided().into_iter().map(|decided| decided.rule).collect();
    assert_eq!(
        rules.iter().filter(|rule| rule.is_some()).count(),
        1,
        "only the listed one has a rule: {rules:?}"
    );
    let proposal = Allowlist::parse(&learned(&proxy)).unwrap();
    assert_eq!(proposal.rules().count(), 2, "what was learned can be listed as it is");
    let ended = proxy.handle.end();
    assert_eq!(ended.learned.len(), 2);
}

#[test]
fn private_addresses_other_names_and_what_is_not_tls_stay_shut() {
    let server = echo();
    let proxy = learning(server.address).start();
    assert!(refused(&proxy, "in.example:443").contains("private_address"));
    assert!(refused(&proxy, "127.0.0.1:443").contains("private_address"));
    assert!(refused(&proxy, "169.254.169.254:443").contains("private_address"));
    assert!(refused(&proxy, "[::ffff:10.0.0.1]:443").contains("private_address"));
    assert!(refused(&proxy, "localhost:443").contains("bad_host"));
    for bytes in [Hello::of("b.example").bytes(), Hello::silent().bytes(), b"SSH-2.0-x\r\n".to_vec()] {
        let (mut client, _) = connect(&proxy, "a.example:443");
        client.send(bytes);
        client.rest();
    }
    let private = Denied(Reason::PrivateAddress);
    let names = [Denied(Reason::OtherName), Denied(Reason::NoName), Denied(Reason::NotTls)];
    assert_eq!(proxy.verdicts()[..4], [private; 4]);
    assert_eq!(proxy.verdicts()[5..], names);
    assert_eq!((learned(&proxy), server.came()), (Vec::new(), Vec::new()));
}

#[test]
fn the_number_of_learned_hosts_is_bounded() {
    let server = echo();
    let proxy = learning(server.address).limits(|limits| limits.learned = 1).start();
    drop(tunnel(&proxy, "a.example"));
    proxy.until(|counts| counts.allowed == 1);
    assert!(refused(&proxy, "b.example:443").contains("learned_quota"));
    drop(tunnel(&proxy, "a.example"));
    drop(tunnel(&proxy, "example.org"));
    proxy.until(|counts| counts.allowed == 3);
    assert_eq!(proxy.verdicts().iter().filter(|verdict| **verdict == Allowed).count(), 3);
    assert_eq!(learned(&proxy), ["a.example"]);
}

#[test]
fn nothing_that_was_learned_widens_the_next_proxy() {
    let server = echo();
    let proxy = learning(server.address).start();
    drop(tunnel(&proxy, "a.example"));
    proxy.until(|counts| counts.allowed == 1);
    drop(proxy);
    let mut next = learning(server.address);
    next.mode = Mode::Strict;
    assert!(refused(&next.start(), "a.example:443").contains("not_listed"));
}
