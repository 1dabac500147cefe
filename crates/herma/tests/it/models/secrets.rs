//! The run's token: nowhere in the evidence, in no command line, and dead with the run.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;

use herma_core::Blocker;

use crate::kit::{ANSWERS, Herma, MODEL, everything_below, fix_and, processes_of, until};

#[test]
fn an_agent_that_says_its_token_does_not_get_it_into_the_evidence() {
    for destination in ["host", "sandbox"] {
        let herma = Herma::with_model(ANSWERS);
        let script = fix_and(&[
            "- shell: echo \"token $HERMA_ROUTER_TOKEN\"; echo \"$HERMA_ROUTER_TOKEN\" >&2",
            "- shell: \"printf '{\\\"type\\\":\\\"message\\\",\\\"text\\\":\\\"%s\\\"}\\\\n' \\\"$HERMA_ROUTER_TOKEN\\\"\"",
            "- ask: { prompt: hi, must: true }",
        ]);
        let finished = herma.play(&script, &[MODEL, ("destination", destination)]);
        finished.assert_pass();
        let said = finished.engine_said();
        assert!(said.contains("token [redacted:"), "{said}");
        let everything = format!("{:?}", everything_below(&finished.bundle.dir));
        assert!(!has_token(&everything), "{everything}");
        for name in ["events.jsonl", "engine/stdout.log", "engine/stderr.log", "model-calls.jsonl"] {
            assert!(!has_token(&finished.bundle.text(name)), "{name}");
        }
    }
}

/// Whether anything looks like a token of a run.
fn has_token(text: &str) -> bool {
    text.match_indices("herma-")
        .any(|(at, found)| text[at + found.len()..].bytes().take_while(u8::is_ascii_hexdigit).count() >= 32)
}

#[test]
fn a_token_in_the_patch_is_a_secret() {
    let herma = Herma::with_model(ANSWERS);
    let script = fix_and(&["- shell: echo \"# $HERMA_ROUTER_TOKEN\" >> slugify.sh"]);
    herma.play(&script, &[MODEL]).assert_only(Blocker::SecretInOutput);
}

#[test]
fn a_model_name_that_looks_like_a_secret_is_not_in_the_evidence_which_holds() {
    let herma = Herma::with_model(ANSWERS);
    let name = format!("gh{}{}", "p_", "aB3dE5fG7hJ9kL2mN4pQ6rS8tU1vW0xYaB3d");
    let ask = format!("- ask: {{ prompt: hi, model: {name}, expect: 403 }}");
    // The kit verifies the bundle.
    let finished = herma.play(&fix_and(&[&ask]), &[MODEL]);
    finished.assert_only(Blocker::ModelMismatch);
    assert!(finished.report.blockers[0].detail.contains("[redacted:github_token]"), "{:#?}", finished.report);
    assert!(finished.bundle.text("model-calls.jsonl").contains("\"asked\":\"[redacted:github_token]\""));
    for (file, (_, bytes)) in everything_below(&finished.bundle.dir) {
        assert!(!String::from_utf8_lossy(&bytes).contains(&name), "{}", file.display());
    }
}

#[test]
fn the_token_is_in_no_command_line_and_dies_with_the_run() {
    let herma = Herma::with_model(ANSWERS);
    let contract = herma.contract(&[MODEL, ("destination", "host")]);
    let told = herma.at("told");
    let script = herma.script(&fix_and(&[
        &format!(
            "- shell: printf '%s %s' \"$HERMA_ROUTER_SOCKET\" \"$HERMA_ROUTER_TOKEN\" > '{}'",
            told.display()
        ),
        "- sleep: 2s",
    ]));
    let run = herma.start(&["run".as_ref(), contract.as_os_str(), "--script".as_ref(), script.as_os_str()]);
    until("the agent told its token", || std::fs::read_to_string(&told).is_ok_and(|text| text.len() > 80));
    let text = std::fs::read_to_string(&told).unwrap();
    let (socket, token) = text.split_once(' ').unwrap();
    assert!(ask(socket, token).unwrap().starts_with("HTTP/1.1 200"), "{:?}", ask(socket, token));
    assert!(ask(socket, "herma-guess").unwrap().starts_with("HTTP/1.1 401"));
    let [id] = herma.runs()[..] else { panic!("{:?}", herma.runs()) };
    for pid in processes_of(id) {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        assert!(!String::from_utf8_lossy(&line).contains(token));
    }
    assert_eq!(run.end().code, Some(0));
    assert!(ask(socket, token).is_none(), "nobody listens any more");
}

fn ask(socket: &str, token: &str) -> Option<String> {
    let mut stream = UnixStream::connect(socket).ok()?;
    let head = format!(
        "GET /v1/models HTTP/1.1\r\nhost: herma\r\nauthorization: Bearer {token}\r\nconnection: close\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    Some(answer)
}
