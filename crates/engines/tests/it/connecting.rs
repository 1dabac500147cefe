//! The step `connect`, against a proxy with a fixed answer.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;

use herma_engines::fake::{Script, Speaker, perform};

use crate::place::ScriptDir;

/// Plays one step against a proxy with this answer; returns the exit code, the output, and the request.
fn connect(step: &str, answer: &'static [u8]) -> (u8, String, String) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let proxy = Some(listener.local_addr().unwrap());
    let answering = std::thread::spawn(move || {
        let (mut client, _) = listener.accept().unwrap();
        let mut asked = Vec::new();
        while !asked.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            client.read_exact(&mut byte).unwrap();
            asked.push(byte[0]);
        }
        client.write_all(answer).unwrap();
        String::from_utf8(asked).unwrap()
    });
    let (code, said) = play(step, Speaker { proxy, ..Speaker::FAKE });
    (code, said, answering.join().unwrap())
}

fn play(step: &str, speaker: Speaker<'_>) -> (u8, String) {
    let place = ScriptDir::empty();
    let script = Script::parse(format!("steps: [{{ connect: {step} }}]").as_bytes()).unwrap();
    let log = place.workspace.join("log");
    let code = perform(&script, speaker, &place.workspace, fs::File::create(&log).unwrap());
    (code, fs::read_to_string(log).unwrap())
}

#[test]
fn a_tunnel_is_asked_for_by_host_and_port() {
    let (code, said, asked) =
        connect("{ to: \"a.example:443\", must: true }", b"HTTP/1.1 200 Connection established\r\n\r\n");
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("the proxy answered with HTTP/1.1 200 Connection established"), "{said}");
    assert_eq!(asked, "CONNECT a.example:443 HTTP/1.1\r\nHost: a.example:443\r\n\r\n");
}

#[test]
fn a_denial_is_reported_and_ends_the_script_only_with_must() {
    let denied = b"HTTP/1.1 403 Forbidden\r\nContent-Length: 10\r\n\r\nnot listed";
    let (code, said, _) = connect("{ to: \"a.example:443\" }", denied);
    assert_eq!(code, 0, "{said}");
    assert!(
        said.contains("`connect` failed: the proxy answered with HTTP/1.1 403 Forbidden: not listed"),
        "{said}"
    );
    let (code, said, _) = connect("{ to: \"a.example:443\", must: true }", denied);
    assert_eq!(code, 1, "{said}");
    assert!(said.contains("\"status\":\"failed\""), "{said}");
}

#[test]
fn without_a_proxy_it_fails() {
    let (code, said) = play("{ to: \"a.example:443\", must: true }", Speaker::FAKE);
    assert_eq!(code, 1);
    assert!(said.contains("there is no egress proxy here"), "{said}");
}
