//! From stage 4 on a proof needs people, and with separation of duties two of them.

use herma_core::Status;
use herma_core::decision::Decision;

use super::{assert_no_ground, proof, states};
use crate::kit::Herma;

const ALICE: [&str; 4] = ["--approver", "alice", "--passphrase-file", "alice.txt"];
const ASKED_BY_BOB: [&str; 4] = ["--asker", "bob", "--asker-passphrase-file", "bob.txt"];
const ASKED_BY_ALICE: [&str; 4] = ["--asker", "alice", "--asker-passphrase-file", "alice.txt"];

fn with_alice_and_bob() -> Herma {
    let herma = Herma::stub_proven(3);
    for name in ["alice", "bob"] {
        herma.let_in(name, None);
    }
    herma
}

#[test]
fn the_requester_cannot_grant_where_duties_are_separated() {
    let herma = with_alice_and_bob();
    herma.settings("separation_of_duties: true\n");
    let before = herma.runs();
    for (options, words) in
        [([&ALICE[..], &[]].concat(), "--asker"), ([&ALICE[..], &ASKED_BY_ALICE].concat(), "alice")]
    {
        let alone = herma.prove(4, &options);
        assert_eq!(alone.code, Some(3), "{alone:#?}");
        let proof = proof(&alone);
        assert_eq!(proof.status, Status::Blocked);
        assert!(
            proof.reasons[0].contains("separation_of_duties") && proof.reasons[0].contains(words),
            "{alone:#?}"
        );
    }
    assert_eq!(herma.runs(), before);
    assert_eq!(states(&herma)[3], "unproven");

    let two = herma.prove(4, &[&ALICE[..], &ASKED_BY_BOB].concat());
    assert_eq!((two.code, proof(&two).status), (Some(0), Status::Pass), "{two:#?}");
    assert_eq!(states(&herma)[3], "proven");
    assert_no_ground(&herma);
    let listed = herma.json(&["approvals", "list", "--json"]);
    let text = listed.to_string();
    assert!(text.contains("bob"), "{listed:#}");
}

#[test]
fn without_a_person_there_is_no_proof_of_stage_4() {
    let mut herma = with_alice_and_bob();
    let before = herma.runs();
    herma.set("HERMA_APPROVER_TOKEN", "");
    for options in
        [&[][..], &["--approver", "alice"], &["--approver", "mallory", "--passphrase-file", "alice.txt"]]
    {
        let nobody = herma.prove(4, options);
        assert_eq!(nobody.code, Some(2), "{options:?}: {nobody:#?}");
    }
    let wrong = ["--approver", "alice", "--passphrase-file", "bob.txt"];
    assert_eq!(herma.prove(4, &wrong).code, Some(2));
    assert_eq!(herma.runs(), before);
    assert_eq!(states(&herma)[3], "unproven");
}

/// No flag and no contract makes a run a proof: what a person starts is work, and needs its stage proven.
#[test]
fn only_a_proof_runs_on_a_stage_that_is_not_proven() {
    let herma = Herma::stub_proven(3);
    let run = super::run_stub(&herma, &[("stage", "4")]);
    super::assert_never_began(&run);
    let decision: Decision = super::decision(&run);
    assert_eq!(serde_json::to_value(decision.purpose).unwrap(), "work");
    for words in [&["--purpose", "proof"][..], &["--proof"]] {
        let contract = herma.contract(&[("stage", "4")]);
        let args = [&["run", contract.to_str().unwrap(), "--engine", "stub"], words].concat();
        assert_eq!(herma.run(&args).code, Some(2));
    }
    let contract = herma.contract(&[("stage", "4"), ("purpose", "proof")]);
    assert_eq!(herma.run(&["run", contract.to_str().unwrap(), "--engine", "stub"]).code, Some(2));
}
