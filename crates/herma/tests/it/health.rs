//! Health: green on a proven home, and red by the right name for everything that breaks.

use std::fs;
use std::path::Path;

use herma_core::RunId;
use serde_json::Value;

use crate::kit::{Ended, Herma, Owned, environment, fix_and};

/// A home in which `fake` has proven every stage, with an admitted target and an accepted run on it.
fn worked() -> (Herma, Owned, RunId) {
    let (herma, owned) = Herma::with_target(&[]);
    let finished = herma.approve_and_play(&fix_and(&[]));
    finished.assert_pass();
    let run = finished.report.run_id;
    let accepted = herma.run_as("alice", &["accept", &run.to_string()]);
    assert_eq!(accepted.code, Some(0), "{accepted:#?}");
    (herma, owned, run)
}

/// Health without the failure matrix, which has tests of its own.
fn quick(herma: &Herma) -> (Ended, Value) {
    let ended = herma.run(&["health", "--json", "--skip-matrix"]);
    let report = ended.json();
    (ended, report)
}

fn failing(report: &Value) -> Vec<&str> {
    report["failing"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect()
}

fn outcome<'a>(report: &'a Value, name: &str) -> &'a str {
    let checks = report["checks"].as_array().unwrap();
    let check = checks.iter().find(|check| check["name"] == name);
    check.unwrap_or_else(|| panic!("there is no check {name}: {report:#}"))["outcome"].as_str().unwrap()
}

#[test]
fn a_proven_home_is_green_and_the_summary_says_so_until_a_record_changes() {
    let (herma, _owned, _run) = worked();
    let ended = herma.run_patiently(&["health", "--json"]);
    let report = ended.json();
    assert_eq!((ended.code, &report["status"]), (Some(0), &Value::from("green")), "{report:#}");
    assert_eq!(failing(&report), [""; 0]);
    for name in [
        "installation_key",
        "trust_chain",
        "approvers",
        "admission:target/my-repo",
        "store_rows",
        "bundles",
        "outcomes",
        "proof:fake/4",
        "proof:fake/5",
        "control_summary",
        "matrix:no_diff",
        "matrix:interrupted",
        "adapter:fake/timeout_fails_closed",
        "adapter:fake/model_gate_blocks",
        "adapter:fake/delayed_content_allowed",
        "adapter:fake/bridge_allowed",
        "adapter:fake/lifecycle_supervision",
    ] {
        assert_eq!(outcome(&report, name), "passed", "{name}");
    }
    for name in ["comparison", "refresh", "audit_chain"] {
        assert_eq!(outcome(&report, name), "not_applicable", "{name}");
    }
    let summary = herma.json(&["summary", "--json"]);
    assert_eq!(summary["health"]["status"], "green", "{summary:#}");
    assert_eq!(summary["health"]["matrix_report_path"], report["matrix_report_path"]);
    let file = herma.file("summary.json", summary.to_string());
    assert_eq!(herma.run(&["summary", "check", file.to_str().unwrap()]).code, Some(0));
    // The next approval is a record that no health check has seen.
    herma.approve();
    let summary = herma.json(&["summary", "--json"]);
    assert_eq!(summary["health"]["status"], "blocked", "{summary:#}");
}

/// A way to break a home, and the check that must name it.
type Break = (&'static str, fn(&mut Herma, RunId), &'static str);

const BREAKS: [Break; 11] = [
    ("a flipped byte in a bundle", |herma, run| flip(&herma.bundle(run).dir.join("test.log")), "bundles"),
    ("a deleted bundle", |herma, run| fs::remove_dir_all(herma.bundle(run).dir).unwrap(), "bundles"),
    (
        "a revoked approver",
        |herma, _| done(&herma.run(&["approver", "revoke", "alice", "--reason", "left", "--last"])),
        "approvers",
    ),
    ("a stale proof", |herma, _| other_build(herma), "proof:fake/4"),
    ("a broken proof", |herma, _| flip(&herma.home().join("proofs/fake/stage-5.json")), "proof:fake/5"),
    (
        "a changed admission",
        |herma, _| append(&herma.home().join("admissions/target/my-repo.yaml")),
        "admission:target/my-repo",
    ),
    (
        "a missing outcome",
        |herma, run| fs::remove_file(herma.bundle(run).dir.join("outcome.json")).unwrap(),
        "outcomes",
    ),
    ("a lost store row", |herma, run| lose_row(herma, run), "store_rows"),
    (
        "an unreadable key",
        |herma, _| fs::write(herma.home().join("keys/installation.key"), "no key\n").unwrap(),
        "installation_key",
    ),
    (
        "another public key",
        |herma, _| fs::write(herma.home().join("keys/installation.pub"), "no key\n").unwrap(),
        "installation_key",
    ),
    (
        "a trust chain that was rolled back",
        |herma, _| {
            let file = herma.home().join("trust/chain.jsonl");
            let text = fs::read_to_string(&file).unwrap();
            let lines: Vec<&str> = text.split_inclusive('\n').collect();
            fs::write(file, lines[..lines.len() - 3].concat()).unwrap();
        },
        "trust_chain",
    ),
];

fn done(ended: &Ended) {
    assert_eq!(ended.code, Some(0), "{ended:#?}");
}

fn flip(file: &Path) {
    let mut bytes = fs::read(file).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(file, bytes).unwrap();
}

fn append(file: &Path) {
    let mut bytes = fs::read(file).unwrap();
    bytes.extend(b"# changed\n");
    fs::write(file, bytes).unwrap();
}

/// Removes the row of a run from the store, as a lost write would.
fn lose_row(herma: &Herma, run: RunId) {
    let script = format!(
        "import sqlite3; c = sqlite3.connect('{}'); \
         c.execute(\"DELETE FROM runs WHERE run_id = '{run}'\"); c.commit(); assert c.total_changes",
        herma.home().join("store.db").display()
    );
    crate::kit::run_tool("python3", &["-c".as_ref(), script.as_ref()], &[]);
}

#[test]
fn every_break_is_red_by_its_own_name() {
    for (what, breaks, name) in BREAKS {
        let (mut herma, _owned, run) = worked();
        let (sound, report) = quick(&herma);
        assert_eq!((sound.code, &report["status"]), (Some(3), &Value::from("incomplete")), "{report:#}");
        breaks(&mut herma, run);
        let (ended, report) = quick(&herma);
        assert_eq!((ended.code, &report["status"]), (Some(1), &Value::from("red")), "{what}: {report:#}");
        assert!(failing(&report).contains(&name), "{what}: {:?}", failing(&report));
        let fast = herma.run(&["health", "--json", "--skip-matrix", "--fail-fast"]);
        assert_eq!(fast.code, Some(1), "{what}");
        let fast = fast.json();
        let [first] = failing(&fast)[..] else { panic!("{what}: {fast:#}") };
        assert_eq!(first, failing(&report)[0], "{what}");
    }
}

/// A herma of another build: the same program with one byte more.
fn other_build(herma: &mut Herma) {
    let binary = herma.program("other/herma", Path::new(crate::kit::HERMA));
    crate::kit::run_tool("sh", &["-c".as_ref(), format!("printf x >> '{}'", binary.display()).as_ref()], &[]);
    herma.set_binary(&binary);
}

#[test]
fn an_outcome_that_was_not_given_in_time_is_red() {
    let (herma, _owned) = Herma::with_target(&[]);
    herma.settings("outcome_within: 1ms\n");
    herma.approve_and_play(&fix_and(&[])).assert_pass();
    let (ended, report) = quick(&herma);
    assert_eq!(ended.code, Some(1), "{report:#}");
    assert_eq!(failing(&report), ["outcomes"]);
}

#[test]
fn a_failing_row_of_the_matrix_is_red_by_its_name() {
    let mut herma = Herma::proven(3);
    // Rows that need a program of their own cannot make it.
    herma.program("tools/install", &herma.file("install.sh", "#!/bin/sh\nexit 1\n"));
    let mut path = herma.at("tools").into_os_string();
    path.push(":");
    path.push(environment("PATH"));
    herma.set("PATH", path);
    let ended = herma.run_patiently(&["health", "--json"]);
    let report = ended.json();
    assert_eq!(ended.code, Some(1), "{report:#}");
    assert_eq!(
        failing(&report),
        ["matrix:engine_digest_mismatch", "matrix:engine_identity_mismatch", "matrix:confinement_failed"]
    );
}

#[test]
fn one_row_can_be_run_alone_is_not_recorded_and_its_report_is_written() {
    let (herma, _) = Herma::of_normal_user();
    let output = herma.home().parent().unwrap().join("report");
    let rows = ["--row", "unowned_repository", "--row", "no_diff"];
    let args = [&["matrix", "--json", "-o", output.to_str().unwrap()], &rows[..]].concat();
    let report = herma.json(&args);
    assert_eq!((&report["held"], &report["partial"]), (&Value::from(true), &Value::from(true)), "{report:#}");
    assert_eq!(report["rows"].as_array().unwrap().len(), 2);
    let written: Value = serde_json::from_slice(&fs::read(output.join("report.json")).unwrap()).unwrap();
    assert_eq!(written, report);
    assert!(!herma.home().join("matrix").exists());
    assert_eq!(herma.run(&["matrix", "--row", "no-such-row"]).code, Some(2));
    herma.assert_no_run();
}
