//! The identity of the program, and the license of its admission.

use herma_core::{Blocker, Gate, Status};

use super::{assert_never_began, blockers, decision, missing, proof, run_stub, states};
use crate::kit::{Herma, ON_REPOSITORY, Repository};

#[test]
fn a_program_that_says_it_is_something_else_is_not_started() {
    let herma = Herma::stub_proven(2);
    herma.admit_stub(&["--identity=stub 9.9"]);
    let run = run_stub(&herma, &[]);
    assert_eq!(run.ended.code, Some(3), "{:#?}", run.ended);
    assert_eq!(blockers(&run), [Blocker::EngineIdentityMismatch]);
    let (gate, why) = &missing(&run)[0];
    assert_eq!(*gate, Gate::EngineIdentity);
    assert!(why.contains("`stub 0.1.0`") && why.contains("`stub 9.9`"), "{why}");
    assert!(!run.report.engine_started);
    assert!(decision(&run).passed_gates.contains(&Gate::EngineAdmitted));

    let proving = herma.prove(1, &[]);
    assert_eq!(proving.code, Some(3), "{proving:#?}");
    let proof = proof(&proving);
    assert_eq!(proof.status, Status::Blocked);
    assert!(proof.reasons[0].contains("engine_identity_mismatch"), "{:#?}", proof.reasons);
    assert_eq!(states(&herma)[..2], ["proven", "proven"], "what could not be tried took a proof away");

    herma.admit_stub(&[]);
    run_stub(&herma, &[]).assert_pass();
}

#[test]
fn a_program_with_a_false_identity_proves_nothing() {
    let herma = Herma::with_stub();
    let says = |line: &str| format!("#!/bin/sh\nprintf '%s\\n' '{line}'\n");
    for line in [
        r#"{"engine":"stub","version":"9.9"}"#,
        r#"{"engine":"fake","version":"0.1.0"}"#,
        r#"{"engine":"stub","version":"0.1.0 "}"#,
        "stub 0.1.0",
        "",
    ] {
        herma.program("home/programs/herma-stub", &herma.file("liar", says(line)));
        herma.admit_stub(&[]);
        let proving = herma.prove(1, &[]);
        assert_eq!(proving.code, Some(3), "{line}: {proving:#?}");
        let reasons = proof(&proving).reasons;
        assert!(reasons[0].contains("engine_identity_mismatch"), "{line}: {reasons:#?}");
    }
    assert_eq!(states(&herma), ["unproven"; 6]);
}

#[test]
fn an_unresolved_license_admits_stages_1_and_2_only() {
    let herma = Herma::stub_proven(3);
    Repository::of_fixture(&herma, "string-slugify");
    herma.admit_stub(&["--license-resolved=false"]);
    for stage in ["1", "2"] {
        let run = run_stub(&herma, &[("stage", stage)]);
        run.assert_pass();
        assert_eq!(run.report.engine_started, stage == "2");
    }
    let run = run_stub(&herma, &ON_REPOSITORY);
    assert_never_began(&run);
    assert_eq!(blockers(&run), [Blocker::EngineNotAdmitted]);
    assert!(missing(&run)[0].1.contains("stages 1 and 2 only"), "{:#?}", missing(&run));
    for stage in [3, 4] {
        let proving = herma.prove(stage, &[]);
        assert_eq!(proving.code, Some(3), "{proving:#?}");
        assert!(proof(&proving).reasons[0].contains("engine_not_admitted"), "{proving:#?}");
    }
    herma.admit_stub(&[]);
    let run = run_stub(&herma, &ON_REPOSITORY);
    assert!(run.report.engine_started, "{:#?}", run.report);
}
