//! Each step of a script and what it does.

use std::fs;
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use std::time::{Duration, Instant};

use herma_core::VERSION;
use herma_core::engine::EngineResult;
use herma_engines::AgentEvent;
use herma_engines::fake::{Script, Speaker, perform, play_file};

use crate::place::{Played, ScriptDir};

fn text(played: &Played) -> String {
    String::from_utf8(played.output.clone()).unwrap()
}

/// The one message that a script is expected to give.
fn message(played: &Played) -> &str {
    match &played.said[..] {
        [AgentEvent::Hello, AgentEvent::Message(text), AgentEvent::Result(EngineResult::Completed)] => text,
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_empty_script_says_hello_and_a_result() {
    let played = ScriptDir::empty().play("steps: []");
    assert_eq!(
        text(&played),
        format!(
            "{{\"type\":\"hello\",\"engine\":\"fake\",\"version\":\"{VERSION}\"}}\n\
             {{\"type\":\"result\",\"status\":\"completed\"}}\n"
        )
    );
    assert_eq!(played.exit_code, 0);
}

#[test]
fn files_are_written_appended_renamed_and_deleted() {
    let place = ScriptDir::empty();
    fs::create_dir_all(place.path("old/deep")).unwrap();
    fs::write(place.path("old/deep/file"), "x").unwrap();
    let played = place.play(
        "steps:
           - write: { path: a/b/text, text: \"one\\n\" }
           - append: { path: a/b/text, text: two }
           - append: { path: c/new, text: three }
           - write: { path: bytes, base64: AP/+ }
           - rename: { from: bytes, to: d/e/bytes }
           - mkdir: x/y/z
           - delete: old
           - delete: c/new",
    );
    assert_eq!(played.said.len(), 2, "{:?}", played.said);
    assert_eq!(place.read("a/b/text"), "one\ntwo");
    assert_eq!(fs::read(place.path("d/e/bytes")).unwrap(), [0x00, 0xff, 0xfe]);
    assert!(!place.path("bytes").exists() && !place.path("old").exists() && !place.path("c/new").exists());
    assert!(place.path("x/y/z").is_dir());
}

#[test]
fn links_pipes_and_permissions_are_set() {
    let place = ScriptDir::empty();
    place.play(
        "steps:
           - write: { path: tool, text: x }
           - chmod: { path: tool, mode: \"750\" }
           - symlink: { path: to/nowhere, target: ../../no/such }
           - fifo: pipe",
    );
    assert_eq!(fs::metadata(place.path("tool")).unwrap().permissions().mode() & 0o7777, 0o750);
    assert_eq!(fs::read_link(place.path("to/nowhere")).unwrap().to_str(), Some("../../no/such"));
    assert!(place.path("pipe").symlink_metadata().unwrap().file_type().is_fifo());
}

#[test]
fn deleting_a_link_leaves_what_it_leads_to() {
    let place = ScriptDir::empty();
    place.play(
        "steps:
           - write: { path: kept/file, text: x }
           - symlink: { path: link, target: kept }
           - delete: link",
    );
    assert_eq!(place.read("kept/file"), "x");
    assert!(place.path("link").symlink_metadata().is_err());
}

#[test]
fn paths_may_leave_the_workspace_and_need_not_be_utf8() {
    let place = ScriptDir::empty();
    let absolute = place.workspace.with_file_name("absolute");
    place.play(&format!(
        "steps:
           - write: {{ path: ../beside, text: x }}
           - write: {{ path: '{}', text: x }}
           - write: {{ path: 'caf\\xe9', text: x }}",
        absolute.display()
    ));
    assert!(place.workspace.with_file_name("beside").is_file());
    assert!(absolute.is_file());
    assert_eq!(place.snapshot().keys().next().unwrap(), b"caf\xe9");
}

#[test]
fn a_failed_step_is_reported_and_the_script_continues() {
    let place = ScriptDir::empty();
    let played = place.play(
        "steps:
           - delete: no/such
           - write: { path: after, text: x }",
    );
    assert_eq!(message(&played), "could not delete `no/such`: No such file or directory (os error 2)");
    assert!(place.path("after").exists());

    let played = place.play("steps: [shell: exit 7]");
    assert_eq!(message(&played), "`exit 7` failed: exit status: 7");
    assert_eq!(played.exit_code, 0);
}

#[test]
fn a_shell_step_that_must_succeed_ends_the_script() {
    let place = ScriptDir::empty();
    let played = place.play(
        "steps:
           - shell: { command: exit 7, must: true }
           - write: { path: after, text: x }",
    );
    assert_eq!(played.exit_code, 1);
    assert_eq!(played.said.last(), Some(&AgentEvent::Result(EngineResult::Failed)));
    assert!(!place.path("after").exists());
}

#[test]
fn output_of_a_shell_step_is_the_engines_output() {
    let place = ScriptDir::empty();
    let played = place.play(
        "steps:
           - say: before
           - shell: pwd; cat
           - say: after",
    );
    let text = text(&played);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 5, "{text}");
    assert_eq!(fs::canonicalize(lines[2]).unwrap(), fs::canonicalize(&place.workspace).unwrap());
    assert_eq!(played.not_understood, 1);
}

#[test]
fn protocol_lines_survive_a_round_trip() {
    let played = ScriptDir::empty().play(
        "steps:
           - say: hello
           - plan: [one, two]
           - tool: { name: shell, command: git push }
           - print: no protocol
           - flood: { bytes: 3MiB }
           - result: rejected",
    );
    assert_eq!(
        played.said,
        [
            AgentEvent::Hello,
            AgentEvent::Message("hello".into()),
            AgentEvent::Plan(vec!["one".into(), "two".into()]),
            AgentEvent::Tool { name: "shell".into(), command: "git push".into() },
            AgentEvent::Result(EngineResult::Rejected),
        ]
    );
    assert_eq!((played.not_understood, played.cut), (2, 1));
    assert!(played.output.len() > 3 << 20);
}

#[test]
fn a_result_can_be_given_once_not_at_all_or_wrongly() {
    let said = |yaml: &str| ScriptDir::empty().play(yaml).said;
    assert_eq!(
        said("steps: [result: failed]"),
        [AgentEvent::Hello, AgentEvent::Result(EngineResult::Failed)]
    );
    assert_eq!(said("steps: [result: none]"), [AgentEvent::Hello]);
    assert!(matches!(&said("steps: [result: malformed]")[..], [AgentEvent::Hello, AgentEvent::Malformed(_)]));
}

#[test]
fn exit_ends_at_once_without_a_result_also_inside_repeat() {
    let played =
        ScriptDir::empty().play("steps: [repeat: { times: 3, steps: [say: once, exit: 3] }, say: never]");
    assert_eq!(played.exit_code, 3);
    assert_eq!(played.said, [AgentEvent::Hello, AgentEvent::Message("once".into())]);
}

#[test]
fn repeat_plays_its_steps_over_and_over() {
    let played = ScriptDir::empty().play("steps: [repeat: { times: 3, steps: [say: again, sleep: 1ms] }]");
    assert_eq!(played.said.len(), 5, "{:?}", played.said);
}

#[test]
fn no_output_precedes_the_first_step_after_sleep() {
    let place = ScriptDir::empty();
    let log = place.workspace.with_file_name("output");
    let output = fs::File::create(&log).unwrap();
    let script = Script::parse(b"steps: [sleep: 400ms, say: awake]").unwrap();
    std::thread::scope(|scope| {
        let start = Instant::now();
        let playing = scope.spawn(|| perform(&script, Speaker::FAKE, &place.workspace, output));
        std::thread::sleep(Duration::from_millis(50));
        let early = fs::read(&log).unwrap();
        // On a machine that was too slow to look in time there is nothing to learn.
        if start.elapsed() < Duration::from_millis(300) {
            assert_eq!(early, b"");
        }
        assert_eq!(playing.join().unwrap(), 0);
        assert!(start.elapsed() >= Duration::from_millis(400));
    });
    assert_eq!(fs::read_to_string(&log).unwrap().lines().count(), 3);
}

#[test]
fn a_daemon_lives_on_in_a_session_of_its_own() {
    let place = ScriptDir::empty();
    let played = place.play("steps: [daemon: 'echo $$ > pid.new; mv pid.new pid; exec sleep 60']");
    assert_eq!(played.exit_code, 0, "{:?}", played.said);
    let deadline = Instant::now() + Duration::from_mins(2);
    while !place.path("pid").exists() {
        assert!(Instant::now() < deadline, "the daemon did not start: {:?}", played.said);
        std::thread::sleep(Duration::from_millis(5));
    }
    let pid = place.read("pid").trim().to_owned();
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    assert!(place.sh(&format!("kill {pid}")).status.success());
    // After the name in brackets: state, parent, process group, session.
    let session = stat.rsplit(") ").next().unwrap().split(' ').nth(3).unwrap();
    assert_eq!(session, pid);
}

#[test]
fn an_invalid_script_is_reported_and_exits_with_2() {
    let place = ScriptDir::empty();
    let (log, script) = (place.workspace.with_file_name("output"), place.path("script.yaml"));
    for content in [None, Some("steps: [wrote: x]")] {
        if let Some(content) = content {
            fs::write(&script, content).unwrap();
        }
        assert_eq!(play_file(&script, &place.workspace, Speaker::FAKE, fs::File::create(&log).unwrap()), 2);
        let said = fs::read_to_string(&log).unwrap();
        assert!(said.contains("the script cannot be played: "), "{said}");
    }
}

#[test]
fn a_closed_output_ends_the_script() {
    let place = ScriptDir::empty();
    let script = Script::parse(b"steps: [say: hello, write: { path: after, text: x }]").unwrap();
    let deaf = fs::File::open("/dev/null").unwrap();
    assert_eq!(perform(&script, Speaker::FAKE, &place.workspace, deaf), 1);
    assert!(!place.path("after").exists());
}
