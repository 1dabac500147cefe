//! The program with an assignment: every kind of step, every misbehaviour that ends by itself.

use std::fs::{self, File};
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use herma_core::engine::EngineResult;
use herma_engines::AgentEvent;
use herma_engines::fake::{Script, Step};

use crate::program::{Place, STUB, assignment, digest};

/// One step of each kind but `exit`, which has its own test.
const EVERY_STEP: &str = r#"steps:
  - sleep: 1ms
  - write: { path: a/text, text: "one\n" }
  - write: { path: bytes, base64: AP/+ }
  - append: { path: a/text, text: two }
  - rename: { from: bytes, to: b/bytes }
  - chmod: { path: a/text, mode: "750" }
  - symlink: { path: link, target: a/text }
  - mkdir: empty
  - fifo: pipe
  - write: { path: gone, text: x }
  - delete: gone
  - shell: { command: echo shell > shell.txt, must: true }
  - ask: { prompt: who are you }
  - connect: { to: "example.org:443" }
  - daemon: "echo daemon > daemon.new; mv daemon.new daemon.txt"
  - say: hello
  - plan: [one, two]
  - tool: { name: shell, command: git push }
  - print: no protocol
  - flood: { bytes: 2MiB }
  - repeat: { times: 2, steps: [say: again] }
  - result: rejected
"#;

#[test]
fn the_script_above_has_every_kind_of_step() {
    let kind = |step: &Step| format!("{step:?}").split(['(', ' ']).next().unwrap().to_owned();
    let steps = Script::parse(EVERY_STEP.as_bytes()).unwrap().steps;
    let mut kinds: Vec<String> = steps.iter().map(kind).collect();
    kinds.sort_unstable();
    kinds.dedup();
    // Without `exit`. The parser lists what it knows where it knows nothing like it.
    let unknown = Script::parse(b"steps: [zzzzzzzzzzzz: 1]").unwrap_err().problem;
    let known = unknown.split("expected one of: ").nth(1).unwrap().split(", ").count();
    assert_eq!(kinds.len(), known - 1, "{kinds:?} of {unknown}");
}

#[test]
fn every_kind_of_step_works() {
    let place = Place::new();
    let ended = place.play(Some(EVERY_STEP));
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert_eq!(
        ended.said(),
        [
            AgentEvent::Hello,
            AgentEvent::Message("`ask` failed: there is no router: the contract names no model".into()),
            AgentEvent::Message("`connect` failed: there is no egress proxy here".into()),
            AgentEvent::Message("hello".into()),
            AgentEvent::Plan(vec!["one".into(), "two".into()]),
            AgentEvent::Tool { name: "shell".into(), command: "git push".into() },
            AgentEvent::Message("again".into()),
            AgentEvent::Message("again".into()),
            AgentEvent::Result(EngineResult::Rejected),
        ]
    );
    let read = |name: &str| fs::read_to_string(place.path(name)).unwrap();
    assert_eq!(
        (read("a/text"), read("link"), read("shell.txt")),
        ("one\ntwo".into(), read("a/text"), "shell\n".into())
    );
    assert_eq!(fs::read(place.path("b/bytes")).unwrap(), [0x00, 0xff, 0xfe]);
    assert_eq!(fs::metadata(place.path("a/text")).unwrap().permissions().mode() & 0o7777, 0o750);
    assert!(place.path("empty").is_dir() && !place.path("gone").exists() && !place.path("bytes").exists());
    assert!(place.path("pipe").symlink_metadata().unwrap().file_type().is_fifo());
    let deadline = Instant::now() + Duration::from_mins(2);
    while !place.path("daemon.txt").exists() {
        assert!(Instant::now() < deadline, "the daemon did not start");
        std::thread::sleep(Duration::from_millis(5));
    }
    let text = String::from_utf8(ended.stdout).unwrap();
    assert!(text.contains("\nno protocol\n") && text.len() > 2 << 20);
}

#[test]
fn hello_names_the_program_and_the_result_names_the_contract() {
    let ended = Place::new().play(Some("steps: []"));
    let expected = format!(
        "{{\"type\":\"hello\",\"engine\":\"stub\",\"version\":\"{}\"}}\n\
         {{\"type\":\"result\",\"status\":\"completed\",\"contract_digest\":\"{}\"}}\n",
        env!("CARGO_PKG_VERSION"),
        digest()
    );
    assert_eq!(String::from_utf8(ended.stdout).unwrap(), expected);
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""));
}

#[test]
fn exit_codes_are_those_of_the_script() {
    for (script, code) in [("steps: [exit: 3]", 3), ("steps: [shell: { command: exit 7, must: true }]", 1)] {
        assert_eq!(Place::new().play(Some(script)).code, Some(code), "{script}");
    }
}

#[test]
fn results_can_be_missing_malformed_or_without_their_envelope() {
    let said = |script: &str| Place::new().play(Some(script)).said();
    assert_eq!(said("steps: [result: none]"), [AgentEvent::Hello]);
    for script in [
        "steps: [result: malformed]",
        r#"steps: [result: none, print: '{"type":"result","status":"completed"}']"#,
    ] {
        assert!(matches!(&said(script)[..], [AgentEvent::Hello, AgentEvent::Malformed(_)]), "{script}");
    }
}

#[test]
fn without_a_script_it_says_that_it_can_do_nothing() {
    let place = Place::new();
    let ended = place.play(None);
    assert_eq!(ended.code, Some(1));
    assert!(matches!(
        &ended.said()[..],
        [AgentEvent::Hello, AgentEvent::Message(_), AgentEvent::Result(EngineResult::Failed)]
    ));
    assert!(fs::read_dir(place.path("")).unwrap().next().is_none());
}

#[test]
fn a_closed_output_ends_the_program() {
    let place = Place::new();
    let input = place.path("../assignment.json");
    fs::write(&input, assignment(Some("steps: [say: hello, write: { path: after, text: x }]"))).unwrap();
    let status = Command::new(STUB)
        .current_dir(place.path(""))
        .stdin(Stdio::from(File::open(&input).unwrap()))
        .stdout(Stdio::from(File::options().write(true).open("/dev/full").unwrap()))
        .status()
        .unwrap();
    assert_eq!(status.code(), Some(1));
    assert!(!place.path("after").exists());
}
