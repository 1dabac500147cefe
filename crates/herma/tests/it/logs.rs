//! `herma logs`: the transcript, and the logs as they were written.

use crate::kit::Herma;

#[test]
fn logs_print_what_engine_and_tests_said() {
    let herma = Herma::new();
    let run = herma.demo(&[]);
    let all = herma.run(&["logs", "--raw"]).stdout;
    for part in ["== engine/stdout.log", "== test.log", "$ sh tests/slugify_test.sh", "[exit 0]"] {
        assert!(all.contains(part), "{part}: {all}");
    }
    let transcript = herma.run(&["logs"]).stdout;
    let shown: Vec<&str> =
        transcript.lines().map(|line| line.get(10..).unwrap_or_default().trim_end()).collect();
    let expected = [
        "agent    every blank becomes a hyphen of its own, also the outer ones",
        "plan     - join words by one hyphen",
        "         - run the test",
        "shell    sh tests/slugify_test.sh",
    ];
    assert_eq!(shown, expected, "{transcript}");
    let json = herma.json(&["logs", "--json"]);
    let kinds: Vec<&str> =
        json["transcript"].as_array().unwrap().iter().map(|line| line["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["message", "plan", "tool_call"]);
    let followed = herma.run(&["logs", "--follow"]).stdout;
    assert_eq!(followed, transcript);
    let events = herma.run(&["logs", "last", "--only", "events"]).stdout;
    assert_eq!(events.trim_end(), run.bundle.text("events.jsonl").trim_end());
    let json = herma.json(&["logs", "--only", "test", "--json"]);
    assert_eq!(json["logs"].as_object().unwrap().keys().collect::<Vec<_>>(), ["test.log"]);
}
