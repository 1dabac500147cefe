//! Another program is another engine: its proofs are stale until it has proven everything again.

use herma_core::{Blocker, Status};

use super::{assert_never_began, blockers, missing, proof, run_stub, rungs, states};
use crate::kit::{Herma, built_stub, until};

/// Puts a program in the place of the admitted one that does the same and has another digest.
pub(super) fn rebuild(herma: &Herma) {
    let mut bytes = std::fs::read(built_stub()).unwrap();
    bytes.push(0);
    let changed = herma.file("rebuilt", bytes);
    herma.program("home/programs/herma-stub", &changed);
}

fn admission(herma: &Herma) -> String {
    let ended = herma.run(&["admissions", "check", "engine", "stub", "--json"]);
    ended.json()["status"].as_str().unwrap().to_owned()
}

#[test]
fn a_rebuilt_program_has_proven_nothing() {
    let herma = Herma::stub_proven(5);
    run_stub(&herma, &[]).assert_pass();
    let runs = herma.runs();

    rebuild(&herma);
    assert_eq!(admission(&herma), "mismatch");
    let all = rungs(&herma);
    for stage in 1..=5 {
        let (state, detail) = &all[&stage];
        assert_eq!(state, "broken", "stage {stage}: {detail}");
        assert!(detail.starts_with("it is stale: proven was sha256:"), "stage {stage}: {detail}");
    }
    let run = run_stub(&herma, &[]);
    assert_never_began(&run);
    assert_eq!(blockers(&run), [Blocker::StageUnproven, Blocker::EngineDigestMismatch]);
    assert!(
        missing(&run)[0].1.contains("has lost its proof of stage 1: it is stale"),
        "{:#?}",
        missing(&run)
    );

    // A person letting it in says nothing about what it can do.
    herma.admit_stub(&[]);
    assert_eq!(admission(&herma), "admitted");
    assert_eq!(states(&herma), ["broken", "broken", "broken", "broken", "broken", "unproven"]);
    let run = run_stub(&herma, &[]);
    assert_never_began(&run);
    assert_eq!(blockers(&run), [Blocker::StageUnproven]);
    let skipped = herma.prove(2, &[]);
    assert_eq!(skipped.code, Some(3), "{skipped:#?}");
    assert!(
        proof(&skipped).reasons[0].starts_with("stage 1 is not proven any more: it is stale"),
        "{skipped:#?}"
    );
    assert_eq!(herma.runs().len(), runs.len() + 2, "only the two blocked runs were made");

    for stage in [1, 2] {
        let proven = herma.prove(stage, &[]);
        assert_eq!((proven.code, proof(&proven).status), (Some(0), Status::Pass), "{proven:#?}");
    }
    assert_eq!(states(&herma), ["proven", "proven", "broken", "broken", "broken", "unproven"]);
    run_stub(&herma, &[]).assert_pass();
    let above = run_stub(&herma, &[("stage", "4")]);
    assert_never_began(&above);
    assert!(
        missing(&above)[0].1.contains("lost its proof of stage 3: it is stale"),
        "{:#?}",
        missing(&above)
    );

    // The program of before comes back: now the two new proofs are stale, and those above them do not help.
    herma.install_stub();
    herma.admit_stub(&[]);
    assert_eq!(states(&herma), ["broken", "broken", "proven", "proven", "proven", "unproven"]);
    let run = run_stub(&herma, &[]);
    assert_never_began(&run);
    assert_eq!(blockers(&run), [Blocker::StageUnproven]);
}

#[test]
fn a_program_that_is_gone_has_proven_nothing() {
    let herma = Herma::stub_proven(2);
    let program = herma.at("home/programs/herma-stub");
    std::fs::remove_file(&program).unwrap();
    assert_eq!(states(&herma)[..2], ["broken", "broken"]);
    let run = run_stub(&herma, &[]);
    assert_never_began(&run);
    assert!(blockers(&run).contains(&Blocker::StageUnproven), "{:#?}", run.report);
    let proving = herma.prove(1, &[]);
    assert_eq!(proving.code, Some(3), "{proving:#?}");
    assert_eq!(proof(&proving).engine_digest, None);
    for text in [&run.ended.stdout, &proving.stdout, &run.bundle.text("report.json")] {
        assert!(!text.contains(program.to_str().unwrap()), "{text}");
    }
    herma.install_stub();
    assert_eq!(states(&herma)[..2], ["proven", "proven"]);
}

/// The program is exchanged while its proof is under way, and let in as well: what the two did is no proof of either.
#[test]
fn a_proof_in_whose_middle_the_program_changes_is_none() {
    let herma = Herma::stub_proven(1);
    let before = herma.runs().len();
    let proving = herma.start(&["prove", "--engine", "stub", "--stage", "2", "--json"]);
    until("the pass case is over", || herma.runs().len() > before + 2);
    rebuild(&herma);
    herma.admit_stub(&[]);
    let ended = proving.end();
    assert_eq!(ended.code, Some(1), "{ended:#?}");
    let proof = proof(&ended);
    assert_eq!(proof.status, Status::Fail);
    let last = proof.rows.last().unwrap();
    assert!(!last.held && last.detail.ends_with("the engine's program was another by then"), "{last:#?}");
    assert!(proof.rows[0].held, "{:#?}", proof.rows[0]);
    herma.install_stub();
    herma.admit_stub(&[]);
    assert_eq!(states(&herma)[..2], ["proven", "broken"]);
}
