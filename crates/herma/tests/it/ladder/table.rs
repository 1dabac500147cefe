//! Every engine, every stage and every row: each row runs or is not applicable, and no path ends in an internal error.
//!
//! `agents` does the same with the real agents.

use herma_core::capability::Capability;
use herma_core::proof::{NotApplicable, Proof};
use herma_core::{Blocker, Status};
use herma_evidence::{InstallationKey, signed};
use serde_json::Value;

use crate::cli::assert_matches;
use crate::kit::{Herma, stage_rows};
use crate::{acp, case};

/// The output of `herma prove --json` with several stages: each step's stage, state and proof.
fn climbed(herma: &Herma, args: &[&str], code: i32) -> Vec<(u64, String, Option<Proof>)> {
    let ended = herma.run_patiently(&[&["prove", "--json"], args].concat());
    assert_eq!(ended.code, Some(code), "{args:?}: {ended:#?}");
    let printed = ended.json();
    assert_matches(&printed, &herma.json(&["schema", "proofs"]), &["prove"]);
    let all = [Status::Pass, Status::Fail, Status::Blocked];
    let status = all.into_iter().find(|status| i32::from(status.exit_code()) == code).unwrap();
    assert_eq!(printed["status"], status.as_str(), "{printed:#}");
    let steps = printed["steps"].as_array().unwrap().iter();
    let proof = |step: &Value| serde_json::from_value(step["proof"].clone()).unwrap();
    steps
        .map(|step| {
            (step["stage"].as_u64().unwrap(), step["state"].as_str().unwrap().to_owned(), proof(step))
        })
        .collect()
}

/// Proves everything up to stage 5 in one command, and looks at every row.
fn every_row_runs(herma: &Herma, engine: &str, has_reviewer: bool, first: u64) {
    let up_to = ["--engine", engine, "--up-to", "5"];
    let steps = climbed(herma, &up_to, 0);
    assert_eq!(steps.len(), 5);
    for (stage, state, proof) in &steps {
        if *stage < first {
            assert_eq!((state.as_str(), proof), ("current", &None), "stage {stage} of {engine}");
            continue;
        }
        let proof = proof.as_ref().unwrap_or_else(|| panic!("stage {stage} of {engine}: {state}"));
        assert_eq!((state.as_str(), u64::from(u8::from(proof.stage))), ("proven", *stage), "{proof:#?}");
        stage_rows::assert_complete(proof, has_reviewer);
    }
    let runs = herma.runs();
    let again = climbed(herma, &up_to, 0);
    assert!(again.iter().all(|(_, state, proof)| state == "current" && proof.is_none()), "{again:#?}");
    assert_eq!(herma.runs(), runs, "what is proven and current is not run again");
    // Stage 6 needs accepted work and a comparison, and says so.
    let last = climbed(herma, &["--engine", engine, "--up-to", "6"], 3).pop().unwrap();
    assert_eq!((last.0, last.1.as_str()), (6, "blocked"), "{last:#?}");
}

#[test]
fn every_row_runs_for_fake() {
    let mut herma = Herma::new();
    herma.let_in_by_token("robin");
    every_row_runs(&herma, "fake", true, 4);
}

#[test]
fn every_row_runs_for_stub() {
    every_row_runs(&Herma::with_stub(), "stub", true, 1);
}

#[test]
fn every_row_but_the_reviewers_runs_for_an_agent_over_acp() {
    every_row_runs(&acp::home(), acp::ENGINE, false, 1);
}

#[test]
fn every_row_runs_for_case() {
    every_row_runs(&case::home(), "case", true, 1);
}

/// Neither an engine that is not there nor one that is not let in makes herma fail inside.
#[test]
fn an_engine_that_cannot_be_tried_is_blocked_at_every_stage() {
    let mut herma = Herma::new();
    herma.let_in_by_token("robin");
    let engines = ["stub", "codex", "claude", "opencode", "pi", "hermes", "case", "acp", "nobody"];
    for engine in engines {
        for stage in ["1", "2", "3", "4", "5", "6"] {
            let ended = herma.run_patiently(&["prove", "--engine", engine, "--stage", stage, "--json"]);
            assert_eq!(ended.code, Some(3), "stage {stage} of {engine}: {ended:#?}");
        }
        let steps = climbed(&herma, &["--engine", engine, "--up-to", "6"], 3);
        let states: Vec<&str> = steps.iter().map(|(_, state, _)| state.as_str()).collect();
        assert_eq!(states[0], "blocked", "{engine}: {steps:#?}");
        assert!(states[1..].iter().all(|state| *state == "not_tried"), "{engine}: {states:?}");
    }
}

/// A revocation after stage 3 blocks stages 4 and 5, which need approvals.
#[test]
fn an_engine_that_lost_its_admission_or_its_switch_is_blocked_at_every_stage() {
    for taken in [
        &["admissions", "revoke", "engine", "stub", "--reason", "not any more"][..],
        &["engines", "disable", "stub"],
    ] {
        let herma = Herma::stub_proven(5);
        let ended = herma.run(taken);
        assert_eq!(ended.code, Some(0), "{ended:#?}");
        for stage in 1..=5 {
            let ended = herma.prove(stage, &[]);
            assert_eq!(ended.code, Some(3), "{taken:?}, stage {stage}: {ended:#?}");
        }
    }
}

/// A row can be left out for the reason that it has, and for no other.
#[test]
fn a_row_that_was_left_out_without_its_reason_is_no_proof() {
    let herma = Herma::stub_proven(5);
    let path = herma.proof("stub", 4);
    let kept = super::kept(&herma, 4);
    let rejected = |blocker: Option<Blocker>| blocker == Some(Blocker::ReviewerRejected);
    assert!(kept.rows.iter().any(|row| rejected(row.expected_blocker)));
    let (_, detail) = &super::rungs(&herma)[&4];
    assert!(detail.starts_with("proven at"), "{detail}");

    let mut without = kept;
    without.rows.retain(|row| !rejected(row.expected_blocker));
    without.not_applicable.push(NotApplicable {
        case: "reviewer reject".to_owned(),
        expected_blocker: Blocker::ReviewerRejected,
        lacks: Capability::Reviewer,
        reason: "`stub` declares no `reviewer`".to_owned(),
    });
    let key = InstallationKey::load_or_create(&herma.home().join("keys")).unwrap();
    let signed = signed::sign(without, &key).unwrap();
    std::fs::write(path, serde_json::to_vec(&signed).unwrap()).unwrap();
    let (state, detail) = &super::rungs(&herma)[&4];
    assert_eq!((state.as_str(), detail.as_str()), ("broken", "its proof has no run of `reviewer reject`"));
}

/// One command proves again what an upgrade made stale, for all engines, and nothing else.
#[test]
fn one_command_proves_stale_stages_again() {
    let herma = Herma::stub_proven(5);
    assert!(climbed(&herma, &["--stale"], 0).is_empty());
    super::stale::rebuild(&herma);
    // Another program has to be let in first, which the first stage says.
    let steps = climbed(&herma, &["--stale"], 3);
    let states: Vec<(u64, &str)> = steps.iter().map(|(stage, state, _)| (*stage, state.as_str())).collect();
    let not_tried = [2, 3, 4, 5].map(|stage| (stage, "not_tried"));
    assert_eq!(states, [&[(1, "blocked")][..], &not_tried].concat());
    herma.admit_stub(&[]);
    std::fs::remove_file(herma.proof("stub", 5)).unwrap();
    let steps = climbed(&herma, &["--stale", "--engine", "stub"], 0);
    let states: Vec<(u64, &str)> = steps.iter().map(|(stage, state, _)| (*stage, state.as_str())).collect();
    assert_eq!(states, [1, 2, 3, 4].map(|stage| (stage, "proven")), "stage 5 was not proven before");
    assert!(climbed(&herma, &["--stale"], 0).is_empty());
    let shown = herma.run(&["prove", "--stale"]);
    assert_eq!((shown.code, shown.stdout.as_str()), (Some(0), "No proof is stale.\n"), "{shown:#?}");
    let unknown = herma.run(&["prove", "--stale", "--engine", "nobody"]);
    assert_eq!(unknown.code, Some(2), "{unknown:#?}");
}

/// One way to say what is to be proven.
#[test]
fn options_that_select_stages_exclude_each_other() {
    let herma = Herma::new();
    for args in [
        &["prove", "--engine", "stub"][..],
        &["prove", "--stage", "1"],
        &["prove", "--up-to", "1"],
        &["prove", "--engine", "stub", "--stage", "1", "--up-to", "2"],
        &["prove", "--engine", "stub", "--stage", "1", "--stale"],
        &["prove", "--engine", "stub", "--up-to", "7"],
    ] {
        let ended = herma.run(args);
        assert_eq!(ended.code, Some(2), "{args:?}: {ended:#?}");
    }
}
