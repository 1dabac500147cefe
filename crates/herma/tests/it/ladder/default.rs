//! No file of a home, no environment and no contract makes another engine the default.

use herma_core::Status;

use super::{proof, run_stub};
use crate::kit::{Finished, Herma};

/// The fixture's contract with nobody named.
fn run_unnamed(herma: &Herma) -> Finished {
    let contract = herma.contract(&[]);
    let script = herma.script("fix");
    let args = ["run", contract.to_str().unwrap(), "--json", "--script", script.to_str().unwrap()];
    herma.finished(&args)
}

#[test]
fn without_a_name_the_default_engine_runs_whatever_was_proven() {
    let mut herma = Herma::stub_proven(5);
    let run = run_unnamed(&herma);
    run.assert_pass();
    assert_eq!(run.report.engine.as_str(), "fake");

    let candidate = herma.prove(6, &[]);
    assert_eq!(candidate.code, Some(3), "{candidate:#?}");
    let judged = proof(&candidate);
    assert_eq!(judged.status, Status::Blocked);
    assert!(judged.reasons[0].contains("herma compare"), "{:#?}", judged.reasons);
    assert_eq!(candidate.json()["runtime_default_activation"], false);

    for name in ["HERMA_ENGINE", "HERMA_DEFAULT_ENGINE", "ENGINE"] {
        herma.set(name, "stub");
    }
    // The home of somebody who would rather have another one.
    for file in ["default", "default-engine", "engines/default.json", "proofs/default"] {
        herma.file(&format!("home/{file}"), "stub\n");
    }
    std::fs::copy(herma.proof("stub", 5), herma.home().join("proofs/stub/stage-6.json")).unwrap();
    let run = run_unnamed(&herma);
    run.assert_pass();
    assert_eq!(run.report.engine.as_str(), "fake");
    assert_eq!(run_stub(&herma, &[]).report.engine.as_str(), "stub");
}

#[test]
fn no_setting_and_no_contract_names_an_engine() {
    let herma = Herma::with_stub();
    for key in ["engine", "default_engine", "runtime_default_activation"] {
        let contract = herma.contract(&[(key, "stub")]);
        let ended = herma.run(&["run", contract.to_str().unwrap()]);
        assert_eq!(ended.code, Some(2), "{ended:#?}");
        assert!(ended.stderr.contains(key), "{ended:#?}");
        herma.settings(&format!("{key}: stub\n"));
        let contract = herma.contract(&[]);
        let ended = herma.run(&["run", contract.to_str().unwrap()]);
        assert_eq!(ended.code, Some(2), "{ended:#?}");
        assert!(ended.stderr.contains(key), "{ended:#?}");
        herma.settings("");
    }
    herma.assert_no_run();
}
