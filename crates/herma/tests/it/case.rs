//! The engine `case`, from outside, with a stand-in for the program: it is on no registry, and a person brings it.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use herma_core::Blocker;

use crate::kit::{Finished, Herma, processes_of};

const ROUTER: &str =
    "[upstreams.rehearsal]\nprovider = \"scripted\"\nscripts = [\"case.yaml\", \"present.yaml\"]\n";
const PRESENT: &str = "name: present\nmodels: [m]\nrepeat: true\nturns: [say: I am there.]\n";

const FIX: &str = r#"
  - call:
      write:
        path: slugify.sh
        text: |
          slugify() {
              printf '%s' "$1" | tr 'A-Z' 'a-z' | tr -cs 'a-z0-9' '-' | sed 's/^-//; s/-$//'
          }
  - call: { shell: git add -A && git commit -qm done }
"#;

/// A home where the stand-in is admitted and switched on, and where a script is the model `rehearsal/m`.
pub(crate) fn home() -> Herma {
    let mut herma = Herma::new();
    herma.let_in_by_token("robin");
    let program = herma.file("home/programs/ca", include_str!("case/stand_in_ca.py"));
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let words = ["admit", "engine", "case", "--json", "--program", program.to_str().unwrap()];
    let more = [
        "--identity=WorkOS Case",
        "--source=a test",
        "--pin=1",
        "--retrieval=none",
        "--license=MIT",
        "--license-resolved=true",
        "--review-trigger=digest_change",
    ];
    let drafted = herma.json(&[&words[..], &more].concat());
    assert!(drafted["lacks"].is_null(), "{drafted:#}");
    assert_eq!(herma.sign("engine", "case")["status"], "admitted");
    herma.json(&["engines", "enable", "case", "--json"]);
    herma.file("home/router.toml", ROUTER);
    herma.file("home/present.yaml", PRESENT);
    let words =
        ["admit", "model", "rehearsal/m", "--json", "--network", "loopback", "--credential-source", "none"];
    herma.json(&[&words[..], &["--review-trigger", "herma_version=0.1"]].concat());
    assert_eq!(herma.sign("model", "rehearsal/m")["status"], "admitted");
    herma
}

/// A run in which the model takes these turns.
fn played(herma: &Herma, turns: &str) -> Finished {
    // The prompts of its agents contain the path of the brief, not the brief.
    let head = "name: case\nmodels: [m]\nmatch: { marker: Task file }\nturns:\n";
    herma.file("home/case.yaml", format!("{head}{turns}"));
    let contract = herma.contract(&[
        ("model", "{ provider: rehearsal, model: m }"),
        ("limits", "{ total: 5m, startup: 1m, idle: 2m }"),
    ]);
    let args = ["run", contract.to_str().unwrap(), "--engine", "case", "--json"];
    let finished = herma.finished_by(|| herma.run_patiently(&args));
    assert_eq!(processes_of(finished.report.run_id), [0_u32; 0]);
    assert_eq!(
        finished.report.engine_exit.as_ref().and_then(|exit| exit.code),
        Some(0),
        "it always exits with 0"
    );
    finished
}

fn says(envelope: &str) -> String {
    format!("  - say: '<<<AGENT_RESULT {envelope} AGENT_RESULT>>>'\n")
}

fn blockers(finished: &Finished) -> Vec<Blocker> {
    finished.report.blockers.iter().map(|record| record.blocker).collect()
}

#[test]
fn case_earns_its_stages_and_is_believed_in_nothing_but_that_it_failed() {
    let herma = home();
    let proven = herma.run_patiently(&["prove", "--engine", "case", "--up-to", "2", "--json"]);
    assert_eq!(proven.code, Some(0), "{proven:#?}");
    // The work is there and would pass, as it did in the proof; what it says of itself is worse.
    for (end, expected) in [
        (says(r#"{"status":"blocked","summary":"I cannot"}"#), Blocker::EngineFailed),
        (says(r#"{"status":"completed","findings":{"critical":1}}"#), Blocker::ReviewerRejected),
    ] {
        let finished = played(&herma, &format!("{FIX}{end}"));
        finished.assert_only(expected);
        assert_eq!(finished.changed(), ["slugify.sh"], "its own files are not part of the work");
    }
    assert_eq!(blockers(&played(&herma, "  - error: 401\n")), [Blocker::EngineFailed, Blocker::NoDiff]);
}

/// `ca` means other programs to other people.
#[test]
fn another_program_of_that_name_is_not_case() {
    let herma = home();
    let program = herma.file("home/programs/ca", "#!/bin/sh\necho 'Usage: ca <command> [options]'\n");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    herma.run(&["admissions", "revoke", "engine", "case", "--reason", "another one is signed"]);
    herma.json(&["admit", "engine", "case", "--json", "--program", program.to_str().unwrap()]);
    assert_eq!(herma.sign("engine", "case")["status"], "admitted");
    let proven = herma.run_patiently(&["prove", "--engine", "case", "--stage", "1", "--json"]);
    assert!(proven.code != Some(0) && proven.stdout.contains("engine_identity_mismatch"), "{proven:#?}");
}
