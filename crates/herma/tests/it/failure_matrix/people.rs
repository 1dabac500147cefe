//! Actions of people before a run: denied or unusable approvals, and admissions of
//! something else.

use std::fs::OpenOptions;
use std::io::Write as _;

use herma_ladder::failure_matrix::World;
use serde_json::Value;

use crate::kit::{CONTRACT, Ended, Herma, until};

/// Has people act in this world on the contract.
pub(super) fn speak(herma: &Herma, world: World) {
    match world {
        World::Denied => {
            let asked = ask(herma);
            let deny = ["approvals", "deny", name(&asked), "--reason", "not this week"];
            assert_done(&herma.run_as("alice", &deny));
        }
        World::ExpiredApproval => grant_and_wait(herma),
        World::UsedApproval => {
            herma.approve();
            assert_done(&herma.run(&["run", CONTRACT, "--script", "script.yaml"]));
        }
        World::NoOutcome => {
            herma.approve();
            herma.settings("outcome_within: 1ms\n");
        }
        _ => {}
    }
}

/// Has the approval granted, and waits until its time is over. How long granting takes is the machine's affair, so
/// there is more time at every attempt.
fn grant_and_wait(herma: &Herma) {
    for seconds in [2, 4, 8, 16] {
        herma.settings(&format!("approval_valid_for: {seconds}s\n"));
        let asked = ask(herma);
        let (id, code) = (name(&asked), asked["code"].as_str().unwrap());
        let granted = herma.run_as("alice", &["approvals", "grant", id, "--reason", "yes", "--code", code]);
        if granted.code == Some(0) {
            until("the approval is over", || herma.approval(id).0 == "expired");
            return;
        }
        assert!(granted.stderr.contains("is expired"), "{granted:#?}");
    }
    panic!("nothing could be granted within 16 seconds");
}

fn ask(herma: &Herma) -> Value {
    herma.json(&["approvals", "request", CONTRACT, "--reason", "it is time", "--json"])
}

fn name(asked: &Value) -> &str {
    asked["approval_id"].as_str().unwrap()
}

fn assert_done(ended: &Ended) {
    assert_eq!(ended.code, Some(0), "{ended:#?}");
}

/// The program is one byte longer than what was admitted.
pub(super) fn change_program(herma: &Herma) {
    // A program that was just run cannot be written to, and a copy of it can.
    let program = herma.install_stub();
    let mut copy = program.clone();
    copy.set_extension("copy");
    std::fs::copy(&program, &copy).unwrap();
    OpenOptions::new().append(true).open(&copy).unwrap().write_all(b"!").unwrap();
    std::fs::rename(&copy, &program).unwrap();
}

/// The very program that has proven stage 1 is admitted under another identity.
pub(super) fn admit_as_another(herma: &Herma) {
    assert_done(&herma.prove(1, &[]));
    assert_done(&herma.run(&[
        "admissions",
        "revoke",
        "engine",
        "stub",
        "--reason",
        "it says something else",
    ]));
    herma.admit_stub(&["--identity=stub 9.9"]);
}
