//! The control summary: read-only, the same for the same home, and only what verifies now.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use herma_core::{Digest, RunId};
use serde_json::{Value, json};

use crate::kit::{CONTRACT, Herma, Owned, everything_below, fix_and};

impl Herma {
    fn summary(&self) -> Value {
        self.json(&["summary", "--json"])
    }

    /// `herma summary check` on this document: its exit code, and the names of the checks that found an error.
    fn check_summary(&self, summary: &Value) -> (Option<i32>, Vec<String>) {
        let file = self.file("summary.json", serde_json::to_vec_pretty(summary).unwrap());
        let ended = self.run(&["summary", "check", file.to_str().unwrap(), "--json"]);
        let result = ended.json();
        assert_eq!(result["ok"], ended.code == Some(0), "{result:#}");
        assert_eq!(result["ok"], result["errors"].as_array().unwrap().is_empty(), "{result:#}");
        let mut names: Vec<String> = result["errors"]
            .as_array()
            .unwrap()
            .iter()
            .map(|error| error["check"].as_str().unwrap().to_owned())
            .collect();
        names.dedup();
        (ended.code, names)
    }

    /// Every file of the home. The index of SQLite's log is memory that processes share, and no content.
    fn digests(&self) -> BTreeMap<PathBuf, Digest> {
        let mut all = everything_below(self.home());
        all.remove(Path::new("store.db-shm"));
        all.into_iter().map(|(path, (_, bytes))| (path, Digest::of(&bytes))).collect()
    }
}

/// An admitted target, an approval of its contract that waits, and no run.
fn requested() -> (Herma, Owned, String) {
    let (herma, owned) = Herma::with_target(&[]);
    let asked = herma.json(&["approvals", "request", CONTRACT, "--reason", "it is time", "--json"]);
    let id = asked["approval_id"].as_str().unwrap().to_owned();
    (herma, owned, id)
}

/// The same after a run that passed with a granted approval.
fn landed() -> (Herma, Owned, RunId) {
    let (herma, owned) = Herma::with_target(&[]);
    let finished = herma.approve_and_play(&fix_and(&[]));
    finished.assert_pass();
    (herma, owned, finished.report.run_id)
}

fn grant(herma: &Herma, id: &str) {
    let shown = herma.json(&["approvals", "show", id, "--json"]);
    let code = shown["code"].as_str().unwrap().to_owned();
    let granted = herma.run_as("alice", &["approvals", "grant", id, "--reason", "yes", "--code", &code]);
    assert_eq!(granted.code, Some(0), "{granted:#?}");
}

/// The four truth values of the table, and the scope.
fn table(summary: &Value) -> Value {
    let approval = &summary["approval"];
    json!([
        approval["approval_required"],
        approval["approval_granted"],
        approval["execution_allowed"],
        approval["approval_consumed"],
        approval["execution_scope"],
    ])
}

/// Every reference in a document.
fn references(value: &Value) -> Vec<String> {
    match value {
        Value::String(text) if text.starts_with("bundle:") || text.starts_with("record:") => {
            vec![text.clone()]
        }
        Value::Array(items) => items.iter().flat_map(references).collect(),
        Value::Object(fields) => fields.values().flat_map(references).collect(),
        _ => Vec::new(),
    }
}

#[test]
fn it_writes_nothing_is_the_same_twice_and_every_reference_opens() {
    let (herma, owned, run) = landed();
    let (home, target) = (herma.digests(), owned.picture());
    let first = herma.run(&["summary", "--json"]);
    assert_eq!(first.code, Some(0), "{first:#?}");
    assert_eq!(herma.run(&["summary", "--json"]).stdout, first.stdout);
    let summary = first.json();
    assert_eq!(herma.check_summary(&summary), (Some(0), Vec::new()));
    let mut references = references(&summary);
    references.sort();
    references.dedup();
    for wanted in [
        format!("bundle:{run}/report.json"),
        "record:proof/fake/5".to_owned(),
        "record:admission/target/my-repo".to_owned(),
        "record:approver/alice".to_owned(),
    ] {
        assert!(references.contains(&wanted), "{wanted}: {references:#?}");
    }
    // Those of the proofs' failure cases are many of one kind.
    for reference in references.iter().filter(|r| r.starts_with("record:") || r.contains(&run.to_string())) {
        let opened = herma.json(&["show", reference, "--json"]);
        assert_eq!(opened["verifies"], true, "{opened:#}");
    }
    assert_eq!(herma.digests(), home, "the home changed");
    assert_eq!(owned.picture(), target, "the target changed");
    let place = herma.at("").display().to_string();
    assert!(!first.stdout.contains(&place), "a path of this machine is in the summary");
}

#[test]
fn the_approval_follows_the_table_of_states() {
    let (herma, _owned, id) = {
        let (herma, owned) = Herma::with_target(&[]);
        assert_eq!(table(&herma.summary()), json!([true, false, false, false, null]), "nothing was asked");
        let asked = herma.json(&["approvals", "request", CONTRACT, "--reason", "it is time", "--json"]);
        (herma, owned, asked["approval_id"].as_str().unwrap().to_owned())
    };
    let asked = herma.summary();
    assert_eq!(table(&asked), json!([true, false, false, false, null]));
    assert_eq!(asked["approval"]["approval_id"], id.as_str());
    assert_eq!(asked["approval_packet"]["status"], "proof_ready");
    assert_eq!(asked["approval_packet"]["executable"], false);
    grant(&herma, &id);
    let granted = herma.summary();
    assert_eq!(table(&granted), json!([true, true, true, false, "one run"]));
    assert_eq!(granted["approval"]["allowed_next_actions"], json!(["run"]));
    herma.script(&fix_and(&[]));
    herma.finished(&["run", CONTRACT, "--script", "script.yaml"]).assert_pass();
    let used = herma.summary();
    assert_eq!(table(&used), json!([true, true, false, true, null]));
    assert_eq!(used["approval"]["allowed_next_actions"], json!(["accept", "reject"]));
    assert_eq!(used["approval_packet"]["status"], "consumed_by_pass_evidence");
    assert_eq!(used["target_repository_mutation"], false);
    assert_eq!(used["landed_branches"][0]["outcome"], "pending");
    for summary in [&asked, &granted] {
        assert_eq!(herma.check_summary(summary).0, Some(1), "an earlier summary says what is no longer so");
    }
    assert_eq!(herma.check_summary(&used), (Some(0), Vec::new()));
}

#[test]
fn an_approval_that_a_failed_run_used_allows_nothing() {
    let (herma, _owned) = Herma::with_target(&[]);
    herma.approve_and_play("steps: []");
    let summary = herma.summary();
    assert_eq!(table(&summary), json!([true, false, false, true, null]));
    assert_eq!(summary["governed_execution"]["status"], "not_recorded");
}

/// A change to a home with a granted approval that no run has used.
type Break = (&'static str, fn(&Herma), &'static str);

const BREAKS_A_GRANT: [Break; 4] = [
    (
        "a stale admission",
        |herma| append(&herma.home().join("admissions/target/my-repo.yaml"), "# changed\n"),
        "admission",
    ),
    (
        "a broken proof",
        |herma| append(&herma.home().join("proofs/fake/stage-5.json"), "x"),
        "stage 5 of fake is not proven",
    ),
    (
        "a revoked approver",
        |herma| {
            let revoked = herma.run(&["approver", "revoke", "alice", "--reason", "left", "--last"]);
            assert_eq!(revoked.code, Some(0), "{revoked:#?}");
        },
        "does not count",
    ),
    (
        "a deleted bundle of the proof",
        |herma| {
            let proof = fs::read_to_string(herma.home().join("proofs/fake/stage-5.json")).unwrap();
            let proof: Value = serde_json::from_str(&proof).unwrap();
            let run = proof["record"]["bundles"][0]["run_id"].as_str().unwrap();
            fs::remove_dir_all(herma.home().join("runs").join(run)).unwrap();
        },
        "stage 5 of fake is not proven",
    ),
];

fn append(file: &Path, text: &str) {
    let mut bytes = fs::read(file).unwrap();
    bytes.extend(text.as_bytes());
    fs::write(file, bytes).unwrap();
}

#[test]
fn a_grant_whose_evidence_broke_allows_nothing() {
    for (what, breaks, reason) in BREAKS_A_GRANT {
        let (herma, _owned, id) = requested();
        grant(&herma, &id);
        let before = herma.summary();
        assert_eq!(table(&before), json!([true, true, true, false, "one run"]), "{what}");
        breaks(&herma);
        let summary = herma.summary();
        assert_eq!(table(&summary), json!([true, false, false, false, null]), "{what}: {summary:#}");
        let said = summary["approval"]["reason"].as_str().unwrap();
        assert!(said.contains(reason), "{what}: {said}");
        let (code, found) = herma.check_summary(&before);
        assert_eq!(code, Some(1), "{what}");
        assert!(found.iter().any(|check| check == "approval_provenance"), "{what}: {found:?}");
        assert_eq!(herma.check_summary(&summary), (Some(0), Vec::new()), "{what}");
    }
}

#[test]
fn a_deleted_bundle_blocks_the_fields_that_are_about_it() {
    let (herma, _owned, run) = landed();
    fs::remove_dir_all(herma.bundle(run).dir).unwrap();
    let summary = herma.summary();
    for field in ["governed_execution", "target_read_only", "target_repository_mutation"] {
        assert_eq!(summary[field]["status"], "blocked", "{field}: {summary:#}");
        assert!(summary[field]["reason"].as_str().unwrap().contains(&run.to_string()), "{summary:#}");
    }
    assert_eq!(table(&summary), json!([true, false, false, true, null]));
    assert_eq!(summary["replay"]["stage5_report"]["status"], "blocked");
}

/// A change to a sound summary, and the check that must refuse it.
type Edit = (&'static str, fn(&mut Value), &'static str);

const EDITS: [Edit; 15] = [
    ("default activation", |s| s["runtime_default_activation"] = json!(true), "default_activation"),
    ("another lane", |s| s["default_validation_lane"] = json!("codex"), "default_activation"),
    ("promotion", |s| s["promotion_status"] = json!("promoted"), "promotion"),
    ("an executable packet", |s| s["approval_packet"]["executable"] = json!(true), "forbidden_actions"),
    ("a forbidden action", |s| s["approval"]["allowed_next_actions"] = json!(["push"]), "forbidden_actions"),
    (
        "an unblocked action",
        |s| s["approval_packet"]["blocked_actions"] = json!(["push"]),
        "forbidden_actions",
    ),
    ("no provenance", |s| s["approval"]["provenance_paths"] = json!([]), "approval_provenance"),
    ("another approver", |s| s["approval"]["approver"] = json!("mallory"), "approval_provenance"),
    ("a second use", |s| s["approval"]["execution_allowed"] = json!(true), "approval_provenance"),
    ("a mutated target", |s| s["target_repository_mutation"] = json!(true), "target_mutation"),
    ("a key for secrets", |s| s["health"]["api_token"] = json!("x"), "secrets"),
    (
        "a path that does not exist",
        |s| s["replay"]["stage5_report"] = json!("bundle:01a1f5d6-b81d-7ef7-8602-dd83cbabb102/report.json"),
        "references",
    ),
    ("a path of a file", |s| s["target_read_only"]["proof_path"] = json!("/etc/passwd"), "references"),
    ("a field less", |s| drop(s.as_object_mut().unwrap().remove("refresh")), "fields"),
    ("a stage that is not proven", |s| s["proof_ladder"][5]["status"] = json!("proven"), "claims"),
];

#[test]
fn a_summary_that_was_edited_is_refused_by_the_check_that_is_about_it() {
    let (herma, _owned, _run) = landed();
    let sound = herma.summary();
    assert_eq!(herma.check_summary(&sound), (Some(0), Vec::new()));
    for (what, edit, check) in EDITS {
        let mut edited = sound.clone();
        edit(&mut edited);
        let (code, found) = herma.check_summary(&edited);
        assert_eq!(code, Some(1), "{what}");
        assert!(found.iter().any(|name| name == check), "{what}: {found:?}");
    }
    let stale = herma.run(&["admissions", "revoke", "target", "my-repo", "--reason", "no longer"]);
    assert_eq!(stale.code, Some(0), "{stale:#?}");
    let (code, found) = herma.check_summary(&sound);
    assert_eq!(code, Some(1));
    assert!(found.iter().any(|name| name == "admissions"), "{found:?}");
    for text in ["", "[]", "{", "null"] {
        let file = herma.file("summary.json", text);
        let ended = herma.run(&["summary", "check", file.to_str().unwrap()]);
        assert_eq!(ended.code, Some(1), "{text:?}: {ended:#?}");
    }
    assert_eq!(herma.run(&["summary", "check", "no-such-file"]).code, Some(2));
}

#[test]
fn without_a_home_nothing_is_made() {
    let herma = Herma::new();
    for command in ["summary", "health"] {
        let ended = herma.run(&[command]);
        assert_eq!(ended.code, Some(2), "{ended:#?}");
        assert!(ended.stderr.contains("there is no herma home"), "{ended:#?}");
    }
    assert!(!herma.home().exists());
}
