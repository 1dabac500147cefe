//! `herma prove`, stage by stage.

use std::collections::BTreeSet;

use herma_core::proof::{CoverageState, Criterion, Proof, Standing};
use herma_core::report::Admission;
use herma_core::{Blocker, RunId, Stage, Status, VERSION};
use herma_ladder::failure_matrix::FAILURE_MATRIX;

use super::{assert_no_ground, proof, rungs, states};
use crate::cli::assert_matches;
use crate::kit::Herma;

/// The failure classes of each stage, as the specification lists them, by what they are closed as.
const CLASSES: [&[Blocker]; 5] = [
    &[Blocker::ProviderUnavailable, Blocker::MissingRequiredEvent, Blocker::ArtifactWriteFailure],
    &[
        Blocker::NoDiff,
        Blocker::DisallowedFile,
        Blocker::VerificationFailed,
        Blocker::MissingTestCommand,
        Blocker::MissingRequiredEvent,
        Blocker::ProviderUnavailable,
    ],
    &[
        Blocker::DirtyStartingTree,
        Blocker::DirtyStartingTree,
        Blocker::DirtyEndingTree,
        Blocker::TimeoutStartup,
        Blocker::TimeoutIdle,
        Blocker::TimeoutTotal,
        Blocker::ArtifactWriteFailure,
        Blocker::DisallowedFile,
        Blocker::VerificationFailed,
        Blocker::MissingRequiredEvent,
    ],
    &[
        Blocker::ApprovalDenied,
        Blocker::ReviewerRejected,
        Blocker::TimeoutIdle,
        Blocker::ProviderUnavailable,
        Blocker::DirtyEndingTree,
        Blocker::DisallowedFile,
    ],
    &[
        Blocker::ApprovalDenied,
        Blocker::UnownedRepository,
        Blocker::CriticalRepository,
        Blocker::DisallowedFile,
        Blocker::DirtyStartingTree,
        Blocker::DirtyEndingTree,
        Blocker::VerificationFailed,
        Blocker::TimeoutIdle,
        Blocker::ProviderUnavailable,
        Blocker::MissingOutcome,
    ],
];

/// The output of `herma prove --json` for each stage.
fn printed(herma: &Herma) -> [Proof; 5] {
    [1, 2, 3, 4, 5].map(|stage| {
        let text = std::fs::read_to_string(herma.at(&format!("prove-{stage}.json"))).unwrap();
        let value = serde_json::from_str(&text).unwrap();
        assert_matches(&value, &herma.json(&["schema", "proof"]), &["prove"]);
        serde_json::from_value(value).unwrap()
    })
}

fn runs_of(proof: &Proof) -> BTreeSet<RunId> {
    proof.bundles.iter().map(|bundle| bundle.run_id).collect()
}

#[test]
fn the_first_five_stages_are_proven_in_order() {
    let herma = Herma::stub_proven(5);
    let listed = herma.json(&["engines", "list", "--json"]);
    let digest = &listed["engines"][1]["digest"];
    let mut seen: BTreeSet<RunId> = BTreeSet::new();
    for (proof, stage) in printed(&herma).iter().zip(Stage::ALL) {
        assert_eq!((proof.status, proof.stage, proof.engine.as_str()), (Status::Pass, stage, "stub"));
        assert_eq!(proof.engine_digest.unwrap().to_string(), digest.as_str().unwrap());
        assert_eq!((proof.herma_version.as_str(), &proof.reasons[..]), (VERSION, &[][..]));
        assert_eq!(proof.prior.is_some(), stage != Stage::Gated, "stage {stage}");
        assert_eq!(proof.candidate, None);
        let baseline = proof.baseline.as_ref().unwrap();
        assert_eq!((baseline.engine.as_str(), baseline.case.as_str()), ("fake", "baseline"));
        assert!(proof.bundles.contains(baseline));
        // Each row is a run of its own with a bundle of its own, and no run stands for two proofs.
        assert_eq!(proof.bundles.len(), proof.rows.len() + 1);
        assert_eq!(runs_of(proof).len(), proof.bundles.len());
        assert!(runs_of(proof).is_disjoint(&seen), "stage {stage} leans on the runs of another");
        seen.extend(runs_of(proof));
        for row in &proof.rows {
            assert!(row.held && !row.detail.is_empty(), "stage {stage}: {row:#?}");
            assert!(runs_of(proof).contains(&row.run_id.unwrap()), "stage {stage}: {row:#?}");
        }
        let criteria: Vec<Criterion> = proof.comparison.iter().map(|compared| compared.criterion).collect();
        assert_eq!(criteria, Criterion::DECIDING, "stage {stage}");
        let standings = proof.comparison.iter().map(|compared| compared.standing);
        assert!(standings.into_iter().all(|s| matches!(s, Standing::Matches | Standing::Beats)));
    }
    assert_eq!(herma.runs().into_iter().collect::<BTreeSet<_>>(), seen, "a run that no proof names");
    assert_no_ground(&herma);
}

#[test]
fn every_failure_class_of_a_stage_is_a_row_that_held() {
    let herma = Herma::stub_proven(5);
    for (proof, classes) in printed(&herma).iter().zip(CLASSES) {
        let pass = &proof.rows[0];
        assert_eq!(
            (pass.case.as_str(), pass.expected_status, pass.expected_blocker),
            ("pass", Status::Pass, None)
        );
        let mut expected: Vec<Blocker> = classes.to_vec();
        let mut found: Vec<Blocker> =
            proof.rows[1..].iter().map(|row| row.expected_blocker.unwrap()).collect();
        expected.sort();
        found.sort();
        assert_eq!(found, expected, "stage {}", proof.stage);
        for row in &proof.rows[1..] {
            let report = herma.bundle(row.run_id.unwrap()).report();
            let blocker = row.expected_blocker.unwrap();
            assert_eq!(row.expected_status, blocker.status());
            assert_eq!((report.stage, report.engine.as_str()), (proof.stage, "stub"));
            if blocker == Blocker::MissingOutcome {
                // The run itself landed; that nobody spoke in time is seen afterwards.
                assert_eq!(report.status, Status::Pass, "{report:#?}");
                continue;
            }
            assert_eq!(report.status, blocker.status(), "stage {}: {row:#?}", proof.stage);
            assert!(report.blockers.iter().any(|b| b.blocker == blocker), "{report:#?}");
            assert!(!report.landing.is_some_and(|landing| landing.landed), "stage {}: {row:#?}", proof.stage);
        }
    }
}

#[test]
fn the_coverage_has_each_row_of_the_failure_matrix_once() {
    let herma = Herma::stub_proven(5);
    let all: Vec<Blocker> = FAILURE_MATRIX.iter().map(|row| row.blocker).collect();
    let mut covered_somewhere = BTreeSet::new();
    for proof in printed(&herma) {
        let listed: Vec<Blocker> = proof.coverage.iter().map(|row| row.blocker).collect();
        assert_eq!(listed, all, "stage {}", proof.stage);
        let held = |blocker| {
            let mut rows = proof.rows.iter();
            rows.find(|row| row.held && row.expected_blocker == Some(blocker)).and_then(|row| row.run_id)
        };
        for row in &proof.coverage {
            match (row.state, held(row.blocker)) {
                (CoverageState::Covered, Some(run)) => {
                    assert!(row.reason.contains(&run.to_string()), "{row:#?}");
                    covered_somewhere.insert(row.blocker);
                }
                (CoverageState::Blocked, None) => assert!(row.reason.len() > 10, "{row:#?}"),
                (state, held) => panic!("stage {}: {state:?} and {held:?}: {row:#?}", proof.stage),
            }
        }
    }
    let classes: BTreeSet<Blocker> = CLASSES.into_iter().flatten().copied().collect();
    assert_eq!(covered_somewhere, classes, "a class of the ladder that no proof covers");
}

#[test]
fn every_bundle_behind_a_proof_verifies_and_says_what_it_was_for() {
    let herma = Herma::stub_proven(5);
    for proof in printed(&herma) {
        for reference in &proof.bundles {
            let bundle = herma.bundle(reference.run_id);
            bundle.assert_whole();
            herma.assert_verifies(&bundle);
            let report = bundle.report();
            assert_eq!((&report.engine, report.stage), (&reference.engine, proof.stage));
            // Where the write of the decision was what failed, there is none.
            if reference.case != "artifact write" {
                let decision: serde_json::Value =
                    serde_json::from_str(&bundle.text("decision.json")).unwrap();
                assert_eq!(decision["purpose"], "proof", "{}: {decision:#}", reference.case);
            }
            if reference.engine.as_str() == "stub" {
                assert_eq!(report.engine_admission, Admission::Admitted, "{}: {report:#?}", reference.case);
                assert!(proof.stage != Stage::Gated || !report.engine_started);
            }
        }
        let contract = |case: &str| {
            let bundle = proof.bundles.iter().find(|bundle| bundle.case == case).unwrap();
            herma.bundle(bundle.run_id).report().contract_digest
        };
        assert_eq!(
            contract("pass"),
            contract("baseline"),
            "stage {}: the lanes had different contracts",
            proof.stage
        );
    }
}

#[test]
fn no_stage_is_skipped() {
    let herma = Herma::with_stub();
    for stage in 2..=6 {
        let skipped = herma.prove(stage, &[]);
        assert_eq!(skipped.code, Some(3), "{skipped:#?}");
        let proof = proof(&skipped);
        assert_eq!((proof.status, u8::from(proof.stage)), (Status::Blocked, stage));
        assert_eq!(proof.reasons, ["stage 1 is not proven"]);
        assert!(proof.rows.is_empty() && proof.bundles.is_empty() && proof.baseline.is_none());
    }
    herma.assert_no_run();
    assert!(!herma.home().join("proofs").exists(), "a proof that was not carried out was kept");
    assert_eq!(states(&herma), ["unproven"; 6]);

    let herma = Herma::stub_proven(2);
    let before = herma.runs();
    for stage in 4..=6 {
        let skipped = herma.prove(stage, &[]);
        assert_eq!(
            (skipped.code, proof(&skipped).reasons),
            (Some(3), vec!["stage 3 is not proven".to_owned()])
        );
    }
    assert_eq!(herma.runs(), before);
}

/// A hole in the middle is one, whatever is above it.
#[test]
fn stages_above_a_missing_one_do_not_count() {
    let herma = Herma::stub_proven(5);
    std::fs::remove_file(herma.proof("stub", 2)).unwrap();
    let run = super::run_stub(&herma, &[]);
    super::assert_never_began(&run);
    assert_eq!(super::blockers(&run), [Blocker::StageUnproven]);
    assert!(super::missing(&run)[0].1.contains("no proof of stage 2"));
    let skipped = herma.prove(6, &[]);
    assert_eq!((skipped.code, proof(&skipped).reasons), (Some(3), vec!["stage 2 is not proven".to_owned()]));
}

#[test]
fn the_ladder_shows_every_engine_and_stage_and_the_next_step() {
    let herma = Herma::stub_proven(3);
    let shown = herma.json(&["ladder", "--json"]);
    assert_matches(&shown, &herma.json(&["schema", "ladder"]), &["ladder"]);
    let rows = shown["rungs"].as_array().unwrap();
    let places: Vec<_> =
        rows.iter().map(|r| (r["engine"].as_str().unwrap(), r["stage"].as_u64().unwrap())).collect();
    let engines = ["fake", "stub", "codex", "claude", "opencode", "pi", "hermes", "case", "acp"];
    let expected: Vec<_> = engines.into_iter().flat_map(|e| (1..=6).map(move |s| (e, s))).collect();
    assert_eq!(places, expected);
    let next: Vec<&str> = rows.iter().filter_map(|row| row["next"].as_str()).collect();
    // A person admits a program that no registry has.
    let first: Vec<_> = engines[2..]
        .iter()
        .map(|engine| match *engine {
            "case" | "acp" => format!("herma admit engine {engine}, then herma admit sign engine {engine}"),
            engine => format!("herma engines install {engine}"),
        })
        .collect();
    assert_eq!(next[..2], ["herma prove --engine fake --stage 4", "herma prove --engine stub --stage 4"]);
    assert_eq!(next[2..], first);
    assert_eq!(states(&herma), ["proven", "proven", "proven", "unproven", "unproven", "unproven"]);
    for (row, proof) in rows[6..9].iter().zip(printed(&herma)) {
        let bundles: Vec<_> =
            row["bundles"].as_array().unwrap().iter().map(|b| b["run_id"].clone()).collect();
        let named: Vec<_> = proof.bundles.iter().map(|b| serde_json::to_value(b.run_id).unwrap()).collect();
        assert_eq!(bundles, named);
        assert!(row["detail"].as_str().unwrap().contains(&proof.proven_at.to_string()), "{row:#}");
    }
    let text = herma.run(&["ladder", "--engine", "stub"]).stdout;
    assert!(text.starts_with("stub\n") && !text.contains("fake\n"), "{text}");
    assert!(
        text.contains("stage-3.json") && text.contains("next: herma prove --engine stub --stage 4"),
        "{text}"
    );
    let unknown = herma.run(&["ladder", "--engine", "no-such-engine"]);
    assert_eq!(unknown.code, Some(2), "{unknown:#?}");
    assert_eq!(rungs(&herma).len(), 6);
}

/// A proof widens nothing: what was proven for `stub` is run with `stub` only where it is named.
#[test]
fn a_proven_engine_runs_where_it_is_named() {
    let herma = Herma::stub_proven(3);
    let named = super::run_stub(&herma, &[]);
    named.assert_pass();
    assert_eq!((named.report.engine.as_str(), named.report.engine_started), ("stub", true));
    let unnamed = herma.play("fix", &[]);
    unnamed.assert_pass();
    assert_eq!(unnamed.report.engine.as_str(), "fake");
    let above = super::run_stub(&herma, &[("stage", "4")]);
    super::assert_never_began(&above);
    assert!(super::missing(&above)[0].1.contains("no proof of stage 4"), "{:#?}", super::missing(&above));
}
