//! Somebody with a trusted key changes one thing and signs again: what a person relies on is contradicted by something else in
//! the bundle, but for what the table in the docs names.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::LazyLock;
use std::time::Duration;

use herma_core::blocker::Blocker;
use herma_core::content::{MissingContent, MissingList, MissingReason};
use herma_core::contract::Action;
use herma_core::engine::DestinationKind;
use herma_core::report::{
    Admission, ApprovalStatus, BaseResult, ChildrenUse, EnvironmentUse, OutcomeState, PathRule,
    PathViolation, VerificationStatus,
};
use herma_core::{Digest, RepoPath, Report, RunId, Status, Timestamp};
use herma_evidence::verify::{CheckName, FIELDS, Reach};
use herma_evidence::{PublicKey, Trust, layout};
use herma_trust::verify_bundle;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::demo;
use crate::forge::{Forge, Forged};

/// The bundle of a demo in the sandbox.
fn confined() -> Forge {
    static BUNDLE: LazyLock<(TempDir, std::path::PathBuf)> = LazyLock::new(|| demo("sandbox"));
    Forge::of(&BUNDLE.1)
}

/// The checks that a bundle breaks, for a verifier that trusts its signer.
pub(crate) fn broken(forged: &Forged) -> Vec<CheckName> {
    let pem = std::fs::read_to_string(forged.key()).unwrap();
    let trust = Trust { keys: vec![PublicKey::from_pem(&pem).unwrap()], approvers: Vec::new() };
    verify_bundle(&forged.dir(), &trust, None, None).failed().map(|check| check.name).collect()
}

fn path(text: &str) -> RepoPath {
    RepoPath::new(text).unwrap()
}

type Change = fn(&mut Report);

/// A change of each field, that a reader would be misled by.
const CHANGES: &[(&str, Change)] = &[
    ("allowed_paths_passed", |r| r.allowed_paths_passed = Some(false)),
    ("approval_status", |r| r.approval_status = ApprovalStatus::Consumed),
    ("artifacts", |r| r.artifacts.values_mut().next().unwrap().written_at = Timestamp::UNIX_EPOCH),
    ("baseline_commit", |r| r.baseline_commit = Some("9".repeat(40))),
    ("blockers", |r| r.blockers.push(Blocker::NoDiff.because("none"))),
    ("changed_files", |r| r.changed_files.clear()),
    ("changed_tests", |r| r.changed_tests.push(path("slugify.sh"))),
    ("changed_verification_files", |r| r.changed_verification_files.push(path("slugify.sh"))),
    ("children", |r| r.children = Some(ChildrenUse { runs: 1, ..ChildrenUse::default() })),
    ("contract_digest", |r| r.contract_digest = Digest::of(b"another")),
    ("contract_id", |r| r.contract_id = "another".parse().unwrap()),
    ("destination", |r| r.destination = DestinationKind::Docker),
    ("egress", |r| r.egress.as_mut().unwrap().bytes_out = 7),
    ("engine", |r| r.engine = "codex".parse().unwrap()),
    ("engine_admission", |r| r.engine_admission = Admission::Admitted),
    ("engine_digest", |r| r.engine_digest = Some(Digest::of(b"another"))),
    ("engine_exit", |r| r.engine_exit.as_mut().unwrap().code = Some(1)),
    ("engine_started", |r| r.engine_started = false),
    ("engine_version", |r| "9.9.9".clone_into(&mut r.engine_version)),
    ("environment", |r| {
        let (definition, tree) = (Digest::of(b"definition"), Digest::of(b"tree"));
        r.environment = Some(EnvironmentUse { definition, layers: vec![tree], tree, rebuilt: None });
    }),
    ("forbidden_actions_attempted", |r| r.forbidden_actions_attempted.push(Action::Push)),
    ("forbidden_paths_passed", |r| r.forbidden_paths_passed = Some(false)),
    ("freshness", |r| r.freshness.passed = false),
    ("herma_version", |r| "9.9.9".clone_into(&mut r.herma_version)),
    ("missing_content", |r| {
        let first = vec![MissingContent { path: path("lib"), reason: MissingReason::SubmoduleNotCheckedOut }];
        r.missing_content = Some(MissingList { count: 1, first });
    }),
    ("model", |r| r.model = Some("m".to_owned())),
    ("model_admission", |r| r.model_admission = Admission::Admitted),
    ("model_provider", |r| r.model_provider = Some("p".to_owned())),
    ("mutation_scope", |r| r.mutation_scope = serde_json::from_value(json!("none")).unwrap()),
    ("not_applicable", |r| drop(r.not_applicable.insert(layout::PATCH.to_owned(), "withheld".to_owned()))),
    ("outcome", |r| r.outcome = OutcomeState::Pending),
    ("outcome_due", |r| r.outcome_due = Some(r.run_finished_at)),
    ("parent_run", |r| r.parent_run = Some(RunId::new(r.run_started_at, [1; 10]))),
    ("path_violations", |r| {
        let detail = "it is forbidden".to_owned();
        r.path_violations.push(PathViolation { path: path("slugify.sh"), rule: PathRule::Forbidden, detail });
    }),
    ("required_events_passed", |r| r.required_events_passed = false),
    ("result_commit", |r| r.result_commit = Some("9".repeat(40))),
    ("result_tree", |r| r.result_tree = Some("9".repeat(40))),
    ("run_finished_at", |r| r.run_finished_at = r.run_started_at),
    ("run_id", |r| r.run_id = RunId::new(r.run_started_at, [1; 10])),
    ("run_started_at", |r| r.run_started_at -= Duration::from_hours(1)),
    ("source_mutated", |r| r.source_mutated = Some(true)),
    ("stage", |r| r.stage = serde_json::from_value(json!(3)).unwrap()),
    ("status", |r| r.status = Status::Fail),
    ("target_admission", |r| r.target_admission = Admission::Admitted),
    ("target_clean_end", |r| r.target_clean_end = Some(false)),
    ("target_clean_start", |r| r.target_clean_start = Some(false)),
    ("trust_head", |r| r.trust_head = None),
    ("usage", |r| r.usage.requests = 7),
    ("verification", |r| r.verification[0].duration_ms += 1),
    ("verification", |r| r.verification[0].exit_code = Some(1)),
    ("verification", |r| r.verification[0].status = VerificationStatus::Failed),
    ("verification", |r| "true".clone_into(&mut r.verification[0].command)),
    ("verification_with_baseline_tests", |r| r.verification_with_baseline_tests = r.verification.clone()),
    ("verify_before", |r| r.verify_before.push(BaseResult::Passed { command: "true".to_owned() })),
    ("walls", |r| r.walls.push("another wall".to_owned())),
];

/// Changes that `herma verify` does not contradict, as the table says.
const UNCONTRADICTED: &[(&str, Change)] = &[
    ("ignored_files", |r| r.ignored_files.push(path("target/x"))),
    ("model_runtime_provider", |r| r.model_runtime_provider = Some("p".to_owned())),
];

/// Fields of which a demo has nothing to change, or which have one value only.
const ELSEWHERE: &[&str] =
    &["approval_id", "landing", "needs", "runtime_default_activation", "schema", "tools"];

#[test]
fn an_honest_bundle_that_is_signed_again_holds() {
    assert_eq!(broken(&confined().sign()), []);
}

#[test]
fn every_field_that_is_changed_is_contradicted() {
    for (field, change) in CHANGES {
        let row = FIELDS.iter().find(|row| row.field == *field);
        assert!(row.is_some_and(|row| row.reach != Reach::Nothing), "{field} is said not to be checked");
        let mut forge = confined();
        change(&mut forge.report);
        let found = broken(&forge.sign());
        assert!(!found.is_empty(), "{field} can be changed");
        assert!(
            !found.contains(&CheckName::Signature) && !found.contains(&CheckName::Subjects),
            "{field}: {found:?}"
        );
    }
    for (field, change) in UNCONTRADICTED {
        let row = FIELDS.iter().find(|row| row.field == *field);
        assert!(row.is_some_and(|row| row.reach == Reach::Nothing), "{field} is said to be checked");
        let mut forge = confined();
        change(&mut forge.report);
        assert_eq!(broken(&forge.sign()), [], "{field} is checked, and the table does not say so");
    }
}

#[test]
fn every_field_of_a_report_is_in_the_table_and_changed() {
    let known: BTreeSet<&str> = FIELDS.iter().map(|row| row.field).collect();
    assert_eq!(known.len(), FIELDS.len(), "a field is there twice");
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schemas/report.json");
    let schema: Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
    let all: BTreeSet<&str> = schema["properties"].as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(known, all);
    let changed =
        CHANGES.iter().chain(UNCONTRADICTED).map(|(field, _)| *field).chain(ELSEWHERE.iter().copied());
    assert_eq!(changed.collect::<BTreeSet<&str>>(), all);
}

/// One change of a file besides the report, which lists it with its new digest.
fn changed_file(name: &str, change: impl FnOnce(&mut Forge)) {
    let mut forge = confined();
    let before = forge.files.clone();
    change(&mut forge);
    assert!(forge.files != before, "{name} is as it was");
    let found = broken(&forge.sign());
    assert!(!found.is_empty(), "{name} can be changed");
    assert!(
        !found.contains(&CheckName::Signature) && !found.contains(&CheckName::Subjects),
        "{name}: {found:?}"
    );
}

fn replaced(name: &str, from: &str, to: &str) {
    changed_file(&format!("{name}: {from}"), |forge| {
        let text = forge.text(name).replacen(from, to, 1);
        forge.put(name, text);
    });
}

#[test]
fn every_file_that_is_changed_is_contradicted() {
    replaced(layout::CONFINEMENT, "\"denied\": true", "\"denied\": false");
    replaced(layout::CONFINEMENT, "no capabilities", "all capabilities");
    replaced(layout::CONFINEMENT, "\"write_root\"", "\"write_boot\"");
    replaced(layout::CONFINEMENT, "\"sandbox\"", "\"docker\"");
    changed_file("a probe that is left out", |forge| {
        forge.json(layout::CONFINEMENT, |record| drop(record["probes"].as_array_mut().unwrap().pop()));
    });
    replaced(layout::TEST_LOG, "[exit 0]", "[exit 1]");
    replaced(layout::TEST_LOG, "$ sh", "$ true; sh");
    replaced(layout::TRACE, "\"verify\"", "\"check\"");
    replaced(layout::DECISION, "\"risk\": \"low\"", "\"risk\": \"high\"");
    replaced(layout::DECISION, "\"approval_required\": false", "\"approval_required\": true");
    replaced(layout::DECISION, "\"selected_engine\": \"fake\"", "\"selected_engine\": \"codex\"");
    replaced(layout::CONTRACT, "stage: 2", "stage: 3");
    replaced(layout::PATCH, "2621f418", "2621f419");
    changed_file("a line of the trace that is left out", |forge| {
        let text = forge.text(layout::TRACE);
        let lines: Vec<&str> = text.lines().filter(|line| !line.contains("\"check\"")).collect();
        forge.put(layout::TRACE, lines.join("\n") + "\n");
    });
    let mut forge = confined();
    let text = forge.text(layout::REPORT_MD).replace("| passed | 0 |", "| passed | 1 |");
    forge.renders = false;
    forge.put(layout::REPORT_MD, text);
    assert_eq!(broken(&forge.sign()), [CheckName::ReportText]);
}

/// The data of the events that the report repeats.
#[test]
fn every_event_that_is_changed_is_contradicted() {
    let changes: &[(&str, &str, Value)] = &[
        ("run.started", "herma_version", json!("9.9.9")),
        ("run.started", "engine", json!("codex")),
        ("run.started", "destination", json!("docker")),
        ("run.started", "stage", json!(3)),
        ("contract.created", "contract_digest", json!(Digest::of(b"another"))),
        ("confinement.probed", "probes", json!(3)),
        ("confinement.probed", "broken", json!(["write_root: written"])),
        ("eligibility.decided", "engine_digest", json!(Digest::of(b"another"))),
        ("eligibility.decided", "selected_engine", json!("codex")),
        ("eligibility.decided", "missing_gates", json!(["depth"])),
        ("eligibility.decided", "decision_id", json!("decision-of-another")),
        ("workspace.prepared", "baseline_commit", json!("9".repeat(40))),
        ("engine.started", "version", json!("9.9.9")),
        ("patch.applied", "result_tree", json!("9".repeat(40))),
        ("patch.applied", "result_commit", json!("9".repeat(40))),
        ("patch.applied", "changed", json!(2)),
        ("diff.checked", "changed_tests", json!(["slugify.sh"])),
        ("diff.checked", "changed_verification_files", json!(["slugify.sh"])),
        ("diff.checked", "violations", json!([{ "path": "x", "rule": "forbidden", "detail": "" }])),
        ("diff.checked", "forbidden_actions", json!(["push"])),
        ("diff.checked", "secret", json!(true)),
        ("verification.completed", "passed", json!(false)),
        ("verification.completed", "commands", json!([])),
        ("run.completed", "status", json!("fail")),
    ];
    for (kind, key, value) in changes {
        changed_file(&format!("{kind}: {key}"), |forge| {
            forge.events(|events| {
                let event = events.iter_mut().find(|event| event.kind.as_str() == *kind).unwrap();
                event.data.insert((*key).to_owned(), value.clone());
            });
        });
    }
}

/// A bundle that an earlier version of herma left.
#[test]
fn a_bundle_of_an_earlier_version_still_holds() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/bundles/earlier");
    let pem = std::fs::read_to_string(dir.join("key.pub")).unwrap();
    let trust = Trust { keys: vec![PublicKey::from_pem(&pem).unwrap()], approvers: Vec::new() };
    let list = verify_bundle(&dir.join("bundle"), &trust, None, None);
    assert!(list.ok(), "{list:#?}");
}
