//! Every row of the failure matrix, on the real binary: status, blocker, event, exit code, whole bundle, nothing
//! else changed.

mod people;
mod worlds;

use herma_core::report::OutcomeState;
use herma_core::{Blocker, EventType, Report, Status};
use herma_ladder::failure_matrix::{FAILURE_MATRIX, Row, Setup, Way, World};

use self::worlds::Scene;
use crate::kit::Herma;

/// One test for each row that can be run, so that a broken row shows by its name.
macro_rules! rows {
    ($($name:ident)*) => {
        $(#[test] fn $name() { run_row(stringify!($name)); })*

        const TESTED: &[&str] = &[$(stringify!($name)),*];
    };
}

rows! {
    no_diff disallowed_file environment_changed unsupported_path verification_failed verification_changed_files missing_required_event
    dirty_ending_tree artifact_write_failure evidence_refused
    agent_protocol_error forbidden_action secret_in_output source_mutated lifecycle_timeout egress_denied engine_failed
    missing_test_command tool_missing environment_failed verification_unrunnable reviewer_rejected approval_denied approval_expired approval_already_consumed approval_void
    timeout_startup timeout_idle timeout_total dirty_starting_tree provider_unavailable
    provider_reasoning_only model_not_admitted model_mismatch engine_not_admitted engine_digest_mismatch engine_identity_mismatch engine_disabled stage_unproven
    target_not_admitted unowned_repository critical_repository missing_outcome recursion_depth destination_unready
    confinement_failed budget_exhausted interrupted
}

#[test]
fn every_blocker_has_exactly_one_row_in_order() {
    let rows: Vec<Blocker> = FAILURE_MATRIX.iter().map(|row| row.blocker).collect();
    assert_eq!(rows, Blocker::ALL);
}

#[test]
fn every_row_that_can_be_run_is_run() {
    let can: Vec<&str> = FAILURE_MATRIX
        .iter()
        .filter(|row| matches!(row.way, Way::Run(_)))
        .map(|row| row.blocker.as_str())
        .collect();
    assert_eq!(TESTED, can);
}

#[test]
fn the_rows_that_cannot_be_run_yet_are_these() {
    let not_yet: Vec<String> = FAILURE_MATRIX
        .iter()
        .filter_map(|row| match row.way {
            Way::NotYet(needs) => Some(format!("{}: needs {needs}", row.blocker)),
            Way::Run(_) => None,
        })
        .collect();
    insta::assert_snapshot!(not_yet.join("\n"), @"");
}

fn run_row(name: &str) {
    let row = FAILURE_MATRIX.iter().find(|row| row.blocker.as_str() == name).unwrap();
    let Way::Run(setup) = row.way else { panic!("{name} cannot be run yet") };
    let scene = Scene::set(setup.world);
    let before = scene.picture();
    let ended = scene.run(&setup);
    match row.blocker {
        Blocker::Interrupted => {
            assert!(ended.was_killed(), "{ended:#?}");
            // The next command closes it, and is itself no failure.
            assert_eq!(scene.herma.run(&["runs"]).code, Some(0));
        }
        // The run is a pass; what is blocked is that anybody leans on it.
        Blocker::MissingOutcome => assert_eq!(ended.code, Some(0), "{ended:#?}"),
        _ => assert_eq!(ended.code, Some(i32::from(row.blocker.status().exit_code())), "{ended:#?}"),
    }
    check_evidence(row, &setup, &scene);
    if !matches!(row.blocker, Blocker::DirtyEndingTree | Blocker::SourceMutated) {
        assert_eq!(scene.picture(), before, "the target changed");
    }
}

fn check_evidence(row: &Row, setup: &Setup, scene: &Scene) {
    let herma = scene.outside();
    let [run] = scene.runs()[..] else { panic!("expected one run, found {:?}", scene.runs()) };
    let bundle = herma.bundle(run);
    let report = bundle.report();
    if row.blocker == Blocker::MissingOutcome {
        check_missing_outcome(herma, &report);
    } else {
        assert_eq!(report.status, row.blocker.status(), "{report:#?}");
        let record = report.blockers.iter().find(|record| record.blocker == row.blocker);
        let record =
            record.unwrap_or_else(|| panic!("{} is not among the blockers: {report:#?}", row.blocker));
        assert!(!record.detail.is_empty() && !record.next_step.is_empty(), "{record:#?}");
    }
    // Only the people's decisions are wrong in these: the rest is proven and admitted.
    let said = [
        World::Denied,
        World::ExpiredApproval,
        World::UsedApproval,
        World::OtherIdentity,
        World::Model,
        World::ReasoningModel,
    ];
    if said.contains(&setup.world) {
        assert_eq!(report.blockers.len(), 1, "{report:#?}");
    }
    assert!(bundle.has_event(row.event), "{} is missing", row.event);
    bundle.assert_whole();
    herma.assert_verifies(&bundle);
    herma.assert_only_the_bundle_is_left(run);
    assert_eq!(herma.active(), [""; 0]);
    if row.event == EventType::EngineGateBlocked {
        assert!(!report.engine_started, "{report:#?}");
        assert_eq!(report.baseline_commit, None);
        assert!(!bundle.has_event(EventType::WorkspacePrepared));
        assert!(!bundle.has_event(EventType::EngineStarted));
    }
    let listed = herma.json(&["runs", "--all", "--json"]);
    assert_eq!(listed["runs"][0]["status"], report.status.as_str(), "the store says something else");
}

/// The run passed and landed, nobody spoke in time, and so nobody can accept it any more. It can be taken back.
fn check_missing_outcome(herma: &Herma, report: &Report) {
    let run = report.run_id.to_string();
    assert_eq!((report.status, report.outcome), (Status::Pass, OutcomeState::Pending), "{report:#?}");
    let listed = herma.json(&["runs", "--all", "--json"]);
    assert_eq!(listed["runs"][0]["outcome"]["state"], Blocker::MissingOutcome.as_str(), "{listed:#}");
    let accepted = herma.run_as("alice", &["accept", &run]);
    assert_eq!(accepted.code, Some(i32::from(Blocker::MissingOutcome.status().exit_code())), "{accepted:#?}");
    assert!(accepted.stderr.starts_with("error: missing_outcome: "), "{accepted:#?}");
    assert!(!herma.bundle(report.run_id).dir.join("outcome.json").exists());
    let rejected = herma.run_as("alice", &["reject", &run, "--reason", "nobody looked at it in time"]);
    assert_eq!(rejected.code, Some(0), "{rejected:#?}");
}

/// A row of the table says what is wrong and nothing else: the same world without the fault passes.
#[test]
fn the_same_run_without_the_fault_is_a_pass() {
    let setup = Setup { script: "fix", terms: &[], engine: "fake", fault: None, world: World::Sound };
    for world in [World::Sound, World::Repository] {
        let scene = Scene::set(world);
        let ended = scene.run(&setup);
        assert_eq!(ended.code, Some(0), "{world:?}: {ended:#?}");
    }
}
