//! The parts of a configuration that a router takes over while it runs.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;

use rustix::process::{Signal, kill_process};

use super::{ask, get, process_with, started};
use crate::kit::{Herma, until};

const ONE: &str = "the-first-token-0123456789abcdef";
const TWO: &str = "the-second-token-0123456789abcdef";

/// A router with a scripted upstream, and two clients who may ask for one model each.
fn two_clients() -> (Herma, std::path::PathBuf) {
    let herma = Herma::new();
    fs::write(herma.at("script.yaml"), "name: script\nturns:\n  - say: Hello.\n").unwrap();
    let file = herma.at("router.toml");
    let config = r#"state = "state"
[listen]
address = "unix:agent.sock"
[admin]
address = "unix:admin.sock"
[upstreams.script]
provider = "scripted"
scripts = ["script.yaml"]
[models.of-alice]
chain = ["script/a"]
[models.of-bob]
chain = ["script/b"]
[clients.alice]
token = { file = "alice.token" }
models = ["of-alice"]
[clients.bob]
token = { file = "bob.token" }
models = ["of-bob"]
"#;
    fs::write(&file, config).unwrap();
    write_tokens(&herma, ONE, TWO);
    (herma, file)
}

fn write_tokens(herma: &Herma, alice: &str, bob: &str) {
    for (name, token) in [("alice.token", alice), ("bob.token", bob)] {
        let path = herma.at(name);
        fs::write(&path, token).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    }
}

/// The client of a token, by the models that it may call.
fn holder(herma: &Herma, token: &str) -> &'static str {
    let request = format!(
        "GET /v1/models HTTP/1.1\r\nhost: r\r\nauthorization: Bearer {token}\r\nconnection: close\r\n\r\n"
    );
    let answer = ask(&herma.at("agent.sock"), &request);
    match (answer.contains("of-alice"), answer.contains("of-bob")) {
        (true, false) => "alice",
        (false, true) => "bob",
        (false, false) if answer.starts_with("HTTP/1.1 401 ") => "nobody",
        _ => panic!("{answer}"),
    }
}

#[test]
fn two_clients_can_swap_their_tokens() {
    let (herma, file) = two_clients();
    let (router, pid) = started(&herma, &file);
    let reload = || ask(&herma.at("admin.sock"), &get("POST", "/reload"));
    assert_eq!((holder(&herma, ONE), holder(&herma, TWO)), ("alice", "bob"));
    for _ in 0..3 {
        write_tokens(&herma, TWO, ONE);
        assert!(reload().starts_with("HTTP/1.1 200 "));
        assert_eq!((holder(&herma, ONE), holder(&herma, TWO)), ("bob", "alice"));
        write_tokens(&herma, ONE, TWO);
        assert!(reload().starts_with("HTTP/1.1 200 "));
        assert_eq!((holder(&herma, ONE), holder(&herma, TWO)), ("alice", "bob"));
    }
    // One takes a token that the other gives up.
    let third = "the-third-token-0123456789abcdef";
    write_tokens(&herma, TWO, third);
    assert!(reload().starts_with("HTTP/1.1 200 "));
    let holders = [ONE, TWO, third].map(|token| holder(&herma, token));
    assert_eq!(holders, ["nobody", "alice", "bob"]);
    // Two clients with one token would be one.
    write_tokens(&herma, ONE, ONE);
    assert!(reload().starts_with("HTTP/1.1 422 "));
    assert_eq!([ONE, TWO, third].map(|token| holder(&herma, token)), holders);
    kill_process(pid, Signal::TERM).unwrap();
    let ended = router.end();
    assert_eq!(ended.code, Some(0), "{ended:#?}");
}

#[test]
fn a_signal_as_soon_as_it_listens_is_not_its_end() {
    let (herma, file) = two_clients();
    for _ in 0..10 {
        let router = herma.start(&["router".as_ref(), "--config".as_ref(), file.as_os_str()]);
        until("the router listens", || UnixStream::connect(herma.at("agent.sock")).is_ok());
        let pid = process_with(&file);
        kill_process(pid, Signal::HUP).unwrap();
        until("it goes on", || UnixStream::connect(herma.at("admin.sock")).is_ok());
        assert_eq!(holder(&herma, ONE), "alice");
        kill_process(pid, Signal::TERM).unwrap();
        let ended = router.end();
        assert_eq!(ended.code, Some(0), "{ended:#?}");
    }
}
