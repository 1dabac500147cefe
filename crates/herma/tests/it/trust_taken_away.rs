//! Revocations, and restored files, while a run is under way.

use herma_core::report::ApprovalStatus;
use herma_core::{Blocker, Status};

use crate::kit::{CONTRACT, HOLD, Herma, fix_and};

/// A revocation while the engine works, and the end of the run.
type Taken = (&'static [&'static str], Blocker);

const TAKEN: [Taken; 2] = [
    (&["admissions", "revoke", "target", "my-repo", "--reason", "not any more"], Blocker::TargetNotAdmitted),
    // She signed the target's admission as well as the approval; the admission is looked at first.
    (&["approver", "revoke", "alice", "--reason", "left", "--last"], Blocker::TargetNotAdmitted),
];

#[test]
fn a_revocation_while_the_engine_works_prevents_the_landing() {
    for (command, blocker) in TAKEN {
        let (herma, owned) = Herma::with_target(&[]);
        let before = owned.picture();
        herma.script(&fix_and(&[HOLD]));
        herma.approve();
        let under_way = herma.under_way();
        let taken = herma.run(command);
        assert_eq!(taken.code, Some(0), "{taken:#?}");
        let finished = under_way.go_on();
        let blockers: Vec<_> = finished.report.blockers.iter().map(|record| record.blocker).collect();
        assert_eq!((finished.report.status, blockers.as_slice()), (Status::Blocked, &[blocker][..]));
        assert_eq!(owned.picture(), before, "{command:?}");
    }
}

#[test]
fn a_store_that_was_put_back_does_not_give_an_approval_back() {
    let herma = Herma::proven(4);
    herma.contract(&[("stage", "4")]);
    herma.approve();
    let files = ["store.db", "store.db-wal", "store.db-shm"];
    let read = |file: &str| std::fs::read(herma.home().join(file)).ok();
    let kept = files.map(read);
    herma.play(&fix_and(&[]), &[("stage", "4")]).assert_pass();
    for (file, bytes) in files.into_iter().zip(kept) {
        let file = herma.home().join(file);
        match bytes {
            Some(bytes) => std::fs::write(file, bytes).unwrap(),
            None => drop(std::fs::remove_file(file)),
        }
    }
    let again = herma.play(&fix_and(&[]), &[("stage", "4")]);
    again.assert_only(Blocker::ApprovalAlreadyConsumed);
    assert_eq!(again.report.approval_status, ApprovalStatus::AlreadyConsumed);
    assert!(!again.report.engine_started);
}

#[test]
fn a_run_that_lost_the_event_which_names_its_approver_is_no_pass() {
    let herma = Herma::proven(4);
    herma.contract(&[("stage", "4")]);
    for event in ["approval.granted", "approval.consumed"] {
        herma.approve();
        let script = herma.script(&fix_and(&[]));
        let args = ["run", CONTRACT, "--script", script.to_str().unwrap()];
        let ended = herma.run_with_fault(&format!("drop-event:{event}"), &args);
        assert_eq!(ended.code, Some(1), "{ended:#?}");
    }
}
