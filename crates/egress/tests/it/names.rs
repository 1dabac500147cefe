//! Names that lead where they must not: a DNS server gives wrong, changing and too many answers.

use std::net::IpAddr;
use std::sync::atomic::Ordering;

use herma_egress::EgressVerdict::{Allowed, Denied, Failed};
use herma_egress::proxy::{Mode, Options};
use herma_egress::resolver::{Resolve as _, System};
use herma_egress::{Fault, Name, Reason};

use super::client::{ask, refused, tunnel};
use super::dns::{Dns, Record};
use super::kit::{HOST, PUBLIC, Proxy, Setup};
use super::server::{Server, echo};

fn addresses(texts: &[&str]) -> Vec<Record> {
    texts.iter().map(|text| Record::Address(text.parse().unwrap())).collect()
}

fn start(server: &Server, dns: &Dns, mode: Mode) -> Proxy {
    let mut setup = Setup::new(server.address).rules(&[HOST, "http://example.org"]);
    setup.resolver = dns.resolver();
    setup.mode = mode;
    setup.start()
}

#[test]
fn a_name_that_leads_to_an_address_that_is_not_public_is_denied_in_either_mode() {
    for answer in [
        "127.0.0.1",
        "10.1.2.3",
        "172.20.0.1",
        "192.168.1.1",
        "169.254.169.254",
        "100.64.0.1",
        "0.0.0.0",
        "224.0.0.1",
        "168.63.129.16",
        "::1",
        "::",
        "::ffff:127.0.0.1",
        "::ffff:10.0.0.1",
        "::7f00:1",
        "64:ff9b::a00:1",
        "2002:7f00:1::",
        "2001::1",
        "fd00::1",
        "fec0::1",
        "fe80::1",
        "ff02::1",
        "fd00:ec2::254",
    ] {
        for mode in [Mode::Strict, Mode::Learn] {
            let server = echo();
            let dns = Dns::new(move |_, _| addresses(&[answer]));
            let proxy = start(&server, &dns, mode);
            let said = refused(&proxy, "example.org:443");
            assert!(
                said.starts_with("HTTP/1.1 403 ") && said.contains("private_address"),
                "{answer}: {said}"
            );
            assert!(!said.contains(answer), "the map of the network stays here: {said}");
            let said = ask(&proxy, "GET http://example.org/ HTTP/1.1\r\nHost: example.org\r\n\r\n");
            assert!(said.starts_with("HTTP/1.1 403 "), "{said}");
            assert_eq!(proxy.verdicts(), [Denied(Reason::PrivateAddress); 2]);
            let recorded = proxy.decided()[0].address.unwrap().ip();
            assert_eq!(recorded, answer.parse::<IpAddr>().unwrap(), "the operator gets to see it");
            assert_eq!(server.connections.load(Ordering::SeqCst), 0);
            assert!(proxy.handle.learned().is_empty(), "what was denied is not learned");
        }
    }
}

#[test]
fn a_name_that_is_public_first_and_private_then_is_reached_once_at_the_first_address() {
    let server = echo();
    let dns = Dns::new(|_, before| addresses(if before == 0 { &[PUBLIC] } else { &["127.0.0.1"] }));
    let proxy = start(&server, &dns, Mode::Strict);
    let (mut client, hello) = tunnel(&proxy, HOST);
    assert_eq!(client.exactly(hello.len()), hello);
    assert_eq!(dns.asked.lock().unwrap().len(), 2, "one question for each family, and none after the check");
    assert_eq!(*proxy.leads.asked.lock().unwrap(), [format!("{PUBLIC}:443").parse().unwrap()]);
    assert!(refused(&proxy, "example.org:443").contains("private_address"));
    assert_eq!(proxy.verdicts(), [Allowed, Denied(Reason::PrivateAddress)]);
    assert_eq!(server.connections.load(Ordering::SeqCst), 1);
}

#[test]
fn a_private_answer_among_public_ones_denies_the_name() {
    for answers in [
        &[PUBLIC, "127.0.0.1"][..],
        &["127.0.0.1", PUBLIC],
        &[PUBLIC, "1.1.1.1", "8.8.8.8", "::1"],
        &["2606:4700::1111", "::ffff:169.254.169.254"],
    ] {
        let server = echo();
        let dns = Dns::new(move |_, _| addresses(answers));
        let proxy = start(&server, &dns, Mode::Strict);
        assert!(refused(&proxy, "example.org:443").contains("private_address"), "{answers:?}");
        assert!(proxy.leads.asked.lock().unwrap().is_empty());
    }
}

#[test]
fn many_addresses_are_tried_a_few_and_too_many_are_denied() {
    let many = |count: u8| (0..count).map(|last| Record::Address(IpAddr::from([8, 8, 4, last]))).collect();
    let server = echo();
    let dns = Dns::new(move |_, _| many(64));
    let dead = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut setup = Setup::new(dead);
    setup.resolver = dns.resolver();
    let proxy = setup.start();
    assert!(refused(&proxy, "example.org:443").starts_with("HTTP/1.1 502 "));
    assert_eq!(proxy.leads.asked.lock().unwrap().len(), 4);
    let dns = Dns::new(move |_, _| many(65));
    let proxy = start(&server, &dns, Mode::Strict);
    assert!(refused(&proxy, "example.org:443").contains("too_many_addresses"));
    assert!(proxy.leads.asked.lock().unwrap().is_empty());
}

#[test]
fn a_chain_of_aliases_is_judged_by_where_it_ends() {
    let chain = |end: &'static str| {
        move |name: &str, _| match name {
            "example.org" => vec![Record::Alias("a.cdn.example".to_owned())],
            "a.cdn.example" => vec![Record::Alias("b.cdn.example".to_owned())],
            _ => addresses(&[end]),
        }
    };
    let server = echo();
    let dns = Dns::new(chain(PUBLIC));
    let proxy = start(&server, &dns, Mode::Strict);
    let (mut client, hello) = tunnel(&proxy, HOST);
    assert_eq!(client.exactly(hello.len()), hello);
    assert_eq!(proxy.handle.counts().allowed, 1);

    let dns = Dns::new(chain("192.168.0.1"));
    let proxy = start(&server, &dns, Mode::Strict);
    assert!(refused(&proxy, "example.org:443").contains("private_address"));

    let dns = Dns::new(|_, _| vec![Record::Alias("example.org".to_owned())]);
    let proxy = start(&server, &dns, Mode::Strict);
    assert!(refused(&proxy, "example.org:443").starts_with("HTTP/1.1 502 "));
    assert_eq!(proxy.verdicts(), [Failed(Fault::Unresolved)]);
}

#[test]
fn a_name_that_is_not_listed_is_not_even_resolved() {
    let server = echo();
    let dns = Dns::new(|_, _| addresses(&[PUBLIC]));
    let proxy = start(&server, &dns, Mode::Strict);
    assert!(refused(&proxy, "c2VjcmV0.evil.example:443").contains("not_listed"));
    assert!(dns.asked.lock().unwrap().is_empty(), "a question carries what is in its name");
}

#[test]
fn a_name_without_an_address_fails_and_is_no_denial() {
    let server = echo();
    let dns = Dns::new(|_, _| Vec::new());
    let proxy = start(&server, &dns, Mode::Strict);
    let answer = refused(&proxy, "example.org:443");
    assert!(answer.starts_with("HTTP/1.1 502 ") && answer.contains("could not reach"), "{answer}");
    assert_eq!(proxy.verdicts(), [Failed(Fault::Unresolved)]);
}

#[tokio::test]
async fn the_system_resolves_no_name_that_cannot_be() {
    // `.invalid` never has an address; with its dot at the end no search list can give it one.
    let name = Name::parse("nothing.invalid").unwrap();
    assert!(System::default().resolve(&name).await.is_err());
}

#[test]
fn the_products_own_edges_are_the_systems() {
    let setup = Setup::new("127.0.0.1:1".parse().unwrap());
    let options = Options::new(herma_egress::Allowlist::default(), setup.clock.clone(), setup.notes.clone());
    assert_eq!(options.mode, Mode::Strict);
    assert_eq!(options.limits.connect.as_secs(), 10);
}
