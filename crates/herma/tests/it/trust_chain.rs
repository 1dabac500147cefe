//! A revocation stays effective, whatever files of the home are removed or restored.

use std::fs;
use std::path::{Path, PathBuf};

use herma_core::Blocker;
use herma_core::report::ApprovalStatus;

use crate::kit::{CONTRACT, Ended, HOLD, Herma, Owned, fix_and};

const STORE: [&str; 3] = ["store.db", "store.db-wal", "store.db-shm"];

impl Herma {
    fn chain_file(&self) -> PathBuf {
        self.home().join("trust/chain.jsonl")
    }

    /// Removes the last records of the chain.
    fn drop_records(&self, count: usize) {
        let text = fs::read_to_string(self.chain_file()).unwrap();
        let lines: Vec<_> = text.split_inclusive('\n').collect();
        fs::write(self.chain_file(), lines[..lines.len() - count].concat()).unwrap();
    }

    fn trusted(&self, name: &str) -> bool {
        let all = self.json(&["approver", "list", "--json"]);
        let of = |item: &&serde_json::Value| item["record"]["name"] == name;
        all["approvers"].as_array().unwrap().iter().find(of).unwrap()["trusted"].as_bool().unwrap()
    }

    fn admission(&self) -> (String, String) {
        let ended = self.run(&["admissions", "check", "target", "my-repo", "--json"]);
        let [status, detail] = ["status", "detail"].map(|key| ended.json()[key].as_str().unwrap().to_owned());
        (status, detail)
    }
}

fn assert_says(ended: &Ended, code: i32, what: &str) {
    assert_eq!(ended.code, Some(code), "{ended:#?}");
    assert!(ended.stderr.contains(what), "{what}: {ended:#?}");
}

/// The content of these files, to be put back later.
fn keep(dir: &Path, files: &[&str]) -> impl Fn() + use<> {
    let kept: Vec<_> = files.iter().map(|file| dir.join(file)).map(|f| (fs::read(&f).ok(), f)).collect();
    move || {
        for (bytes, file) in &kept {
            match bytes {
                Some(bytes) => fs::write(file, bytes).unwrap(),
                None => drop(fs::remove_file(file)),
            }
        }
    }
}

#[test]
fn an_approver_stays_revoked_when_the_revocation_is_removed() {
    let herma = Herma::proven(3);
    herma.let_in("bob", Some("alice"));
    assert!(herma.trusted("bob"));
    assert_eq!(herma.run(&["approver", "revoke", "bob", "--reason", "left"]).code, Some(0));
    fs::remove_file(herma.home().join("keys/approvers/bob.revoked.json")).unwrap();
    assert!(!herma.trusted("bob"));
    assert!(herma.trusted("alice"));
    let shown = herma.run(&["approver", "list"]).stdout;
    assert!(shown.contains("bob was revoked on"), "{shown}");
    let listed = herma.run(&[
        "approver",
        "init",
        "bob",
        "--token",
        "--by",
        "alice",
        "--by-passphrase-file",
        "alice.txt",
    ]);
    assert_says(&listed, 2, "a name is used once");
}

#[test]
fn a_used_approval_stays_used_when_store_and_mark_are_restored() {
    let herma = Herma::proven(4);
    herma.contract(&[("stage", "4")]);
    let id = herma.approve();
    let restore = keep(herma.home(), &STORE);
    let used = herma.play(&fix_and(&[]), &[("stage", "4")]);
    used.assert_pass();
    restore();
    fs::remove_dir_all(herma.home().join("consumed")).unwrap();
    let again = herma.play(&fix_and(&[]), &[("stage", "4")]);
    again.assert_only(Blocker::ApprovalAlreadyConsumed);
    assert_eq!(again.report.approval_status, ApprovalStatus::AlreadyConsumed);
    assert!(!again.report.engine_started);
    assert_eq!(herma.approval(&id), ("consumed".to_owned(), Some(used.report.run_id)));
}

#[test]
fn recovery_completes_the_chain_of_a_run_that_died_between_its_mark_and_the_chain() {
    let herma = Herma::proven(4);
    herma.contract(&[("stage", "4")]);
    herma.script(&fix_and(&[HOLD, HOLD]));
    herma.approve();
    let restore = keep(herma.home(), &STORE);
    let killed = herma.under_way().let_go().kill();
    assert!(killed.was_killed(), "{killed:#?}");
    let last = || fs::read_to_string(herma.chain_file()).unwrap().lines().last().unwrap().to_owned();
    assert!(last().contains("approval_consumed"));
    herma.drop_records(1);
    assert!(!last().contains("approval_consumed"));
    assert_eq!(herma.run(&["runs"]).code, Some(0));
    assert!(last().contains("approval_consumed"));
    restore();
    fs::remove_dir_all(herma.home().join("consumed")).unwrap();
    herma.play(&fix_and(&[]), &[("stage", "4")]).assert_only(Blocker::ApprovalAlreadyConsumed);
}

#[test]
fn a_denied_approval_stays_denied_when_the_store_is_restored() {
    let herma = Herma::proven(4);
    herma.contract(&[("stage", "4")]);
    let asked = herma.json(&["approvals", "request", CONTRACT, "--reason", "please", "--json"]);
    let [id, code] = ["approval_id", "code"].map(|key| asked[key].as_str().unwrap());
    let restore = keep(herma.home(), &STORE);
    assert_eq!(herma.run_as("alice", &["approvals", "deny", id, "--reason", "no"]).code, Some(0));
    restore();
    let granted = herma.run_as("alice", &["approvals", "grant", id, "--reason", "yes", "--code", code]);
    assert_says(&granted, 3, "is denied, so that nobody can rule on it any more");
}

#[test]
fn a_revoked_or_replaced_admission_does_not_come_back() {
    let herma = Herma::proven(3);
    let owned = Owned::new(&herma);
    herma.admit_target(&owned.repository.dir, &[]);
    assert_eq!(herma.admission().0, "admitted");
    let files = ["my-repo.yaml", "my-repo.signed.json", "my-repo.revoked.json"];
    let restore = keep(&herma.home().join("admissions/target"), &files);
    let revoke = ["admissions", "revoke", "target", "my-repo", "--reason", "not any more"];
    assert_eq!(herma.run(&revoke).code, Some(0));
    let restore_revoked = keep(&herma.home().join("admissions/target"), &files);
    restore();
    let (status, detail) = herma.admission();
    assert_eq!(status, "not_admitted", "{detail}");
    assert!(detail.contains("it was revoked, as the trust chain says"), "{detail}");
    restore_revoked();
    herma.admit_target(&owned.repository.dir, &["--allowed-path", "src/**"]);
    assert_eq!(herma.admission().0, "admitted");
    restore();
    let (status, detail) = herma.admission();
    assert_eq!(status, "invalid_admission", "{detail}");
    assert!(detail.contains("a later signature replaced this one"), "{detail}");
}

#[test]
fn nobody_becomes_the_first_approver_by_removing_all_others() {
    let herma = Herma::proven(3);
    herma.demo(&["--destination", "host"]);
    fs::remove_dir_all(herma.home().join("keys/approvers")).unwrap();
    let init = ["approver", "init", "mallory", "--token"];
    assert_says(&herma.run(&init), 2, "this installation has a trust chain of 1 records: it starts once");
    fs::remove_dir_all(herma.home().join("trust")).unwrap();
    assert_says(&herma.run(&init), 3, "the trust chain was rolled back or replaced: the bundle of run");
    // Neither does a new key help: what the old one signed still claims that there was a chain.
    fs::remove_file(herma.home().join("keys/installation.key")).unwrap();
    assert_says(&herma.run(&init), 3, "the trust chain was rolled back or replaced: the bundle of run");
}

#[test]
fn a_chain_that_was_rolled_back_behind_a_bundle_blocks_everything_that_needs_trust() {
    let herma = Herma::proven(4);
    herma.contract(&[("stage", "4")]);
    herma.let_in("bob", Some("alice"));
    herma.approve();
    assert_eq!(herma.run(&["approver", "revoke", "bob", "--reason", "left"]).code, Some(0));
    let named = herma.demo(&["--destination", "host"]).report;
    let restore = keep(herma.home(), &["trust/chain.jsonl"]);
    herma.drop_records(1);
    fs::remove_file(herma.home().join("keys/approvers/bob.revoked.json")).unwrap();
    // Directories with later names do not hide the bundle.
    for number in 10..80 {
        let name = format!("ffffffff-ffff-7fff-8fff-ffffffffff{number}");
        fs::create_dir(herma.home().join("runs").join(name)).unwrap();
    }
    assert!(!herma.trusted("bob") && !herma.trusted("alice"));
    let blocked = herma.play(&fix_and(&[]), &[("stage", "4")]);
    blocked.assert_only(Blocker::ApprovalVoid);
    assert!(!blocked.report.engine_started);
    let detail = &blocked.report.blockers[0].detail;
    assert!(detail.contains("rolled back"), "{detail}");
    assert_says(&herma.run(&["trust", "check"]), 3, "rolled back");
    let doctor = herma.run(&["doctor"]);
    assert!(doctor.stdout.contains("broken  trust chain"), "{doctor:#?}");
    // Runs that need no trust go on, and what is known is not forgotten by them.
    let later = herma.demo(&["--destination", "host"]).report;
    assert_eq!(later.trust_head, named.trust_head);
    fs::remove_dir_all(herma.home().join("runs").join(named.run_id.to_string())).unwrap();
    assert!(!herma.trusted("alice"));
    restore();
    assert!(herma.trusted("alice") && !herma.trusted("bob"));
    herma.play(&fix_and(&[]), &[("stage", "4")]).assert_pass();
}

#[test]
fn a_home_without_its_chain_is_blocked_until_an_approver_adopts_it() {
    let herma = Herma::proven(3);
    herma.let_in("bob", Some("alice"));
    assert_eq!(herma.run(&["approver", "revoke", "bob", "--reason", "left"]).code, Some(0));
    let kept = fs::read(herma.chain_file()).unwrap();
    fs::remove_dir_all(herma.home().join("trust")).unwrap();
    assert!(!herma.trusted("alice"));
    let by = ["approver", "init", "carol", "--token", "--by", "alice", "--by-passphrase-file", "alice.txt"];
    assert_says(&herma.run(&by), 2, "this home has approvers and no trust chain");
    let adopt = ["trust", "adopt"];
    assert_says(&herma.run_as("bob", &adopt), 2, "bob was revoked on");
    let adopted = herma.run_as("alice", &adopt);
    assert_eq!(adopted.code, Some(0), "{adopted:#?}");
    assert!(herma.trusted("alice") && !herma.trusted("bob"));
    assert_says(&herma.run_as("alice", &adopt), 2, "it starts once");
    fs::remove_file(herma.home().join("keys/approvers/bob.revoked.json")).unwrap();
    assert!(!herma.trusted("bob"));
    // Once a bundle names a head there is no adoption that could lose it.
    herma.demo(&["--destination", "host"]);
    fs::remove_dir_all(herma.home().join("trust")).unwrap();
    assert_says(&herma.run_as("alice", &adopt), 3, "rolled back or replaced");
    fs::create_dir(herma.home().join("trust")).unwrap();
    fs::write(herma.chain_file(), kept).unwrap();
    assert!(!herma.trusted("alice"), "the chain of before the adoption is another one");
}

#[test]
fn a_bundle_that_was_kept_elsewhere_shows_a_rollback_of_the_whole_home() {
    let herma = Herma::proven(3);
    herma.let_in("bob", Some("alice"));
    assert_eq!(herma.run(&["approver", "revoke", "bob", "--reason", "left"]).code, Some(0));
    let run = herma.demo(&["--destination", "host"]);
    let elsewhere = herma.at("kept");
    fs::rename(&run.bundle.dir, &elsewhere).unwrap();
    let against = ["trust", "check", "--against", elsewhere.to_str().unwrap()];
    assert_eq!(herma.run(&against).code, Some(0));
    fs::remove_dir_all(herma.home().join("runs")).unwrap();
    herma.drop_records(1);
    assert_eq!(herma.run(&["trust", "check"]).code, Some(0), "nothing in the home knows better");
    assert_says(&herma.run(&against), 3, "rolled back or replaced");
}

#[test]
fn report_first_event_and_attestation_name_the_same_head() {
    let herma = Herma::proven(3);
    let run = herma.demo(&["--destination", "host"]);
    let head = run.report.trust_head.unwrap();
    assert_eq!(head.sequence, 1);
    let started = run.bundle.events().remove(0);
    assert_eq!(started.data["trust_head"], serde_json::to_value(head).unwrap());
    let checked = herma.json(&["trust", "check", "--json"]);
    assert_eq!((&checked["schema"], &checked["witnesses"]), (&"herma.trust/v1".into(), &1.into()));
    assert_eq!(checked["head"], serde_json::to_value(head).unwrap());
}
