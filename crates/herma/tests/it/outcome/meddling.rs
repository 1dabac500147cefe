//! Two who speak at once, and somebody who writes in herma's home or in the target before the operator speaks.

use std::fs;

use herma_core::RunId;
use serde_json::Value;

use super::{accept, listed, reject};
use crate::kit::{Ended, Herma, Owned, as_approver, fix_and, rounds};

/// Lands a branch; gives the run.
fn land(herma: &Herma) -> RunId {
    let run = herma.approve_and_play(&fix_and(&[]));
    run.assert_pass();
    run.report.run_id
}

/// Where the branch of the run stands, if it is there.
fn branch(owned: &Owned, run: RunId) -> Option<String> {
    let refs =
        owned.repository.git(&["for-each-ref", "--format=%(refname) %(objectname)", "refs/heads/herma"]);
    let name = format!("refs/heads/herma/{run} ");
    refs.lines().find_map(|line| line.strip_prefix(&name)).map(str::to_owned)
}

fn outcome_file(herma: &Herma, run: RunId) -> std::path::PathBuf {
    herma.bundle(run).dir.join("outcome.json")
}

/// The word was refused as blocked with this said about it, and nobody's word is recorded.
fn refused(herma: &Herma, run: RunId, ended: &Ended, why: &str) {
    assert_eq!(ended.code, Some(3), "{ended:#?}");
    assert!(ended.stderr.contains(why), "{why}: {ended:#?}");
    assert_eq!(listed(herma, run)["outcome"]["state"], "pending");
    assert!(!outcome_file(herma, run).exists());
}

#[test]
fn of_a_concurrent_accept_and_reject_one_succeeds() {
    let (herma, owned) = Herma::with_target(&[]);
    for round in 0..rounds(4) {
        let run = land(&herma);
        let id = run.to_string();
        let accepting = as_approver("alice", &["accept", &id]);
        let rejecting = as_approver("alice", &["reject", &id, "--reason", "no"]);
        let (accepted, rejected) = if round % 2 == 0 {
            let (accepted, rejected) = (herma.start(&accepting), herma.start(&rejecting));
            (accepted.end(), rejected.end())
        } else {
            let (rejected, accepted) = (herma.start(&rejecting), herma.start(&accepting));
            (accepted.end(), rejected.end())
        };
        let word = match (accepted.code, rejected.code) {
            (Some(0), Some(3)) => "accepted",
            (Some(3), Some(0)) => "rejected",
            _ => panic!("round {round}: {accepted:#?}{rejected:#?}"),
        };
        assert_eq!(listed(&herma, run)["outcome"]["state"], word, "round {round}");
        assert_eq!(branch(&owned, run).is_some(), word == "accepted", "round {round}");
        assert!(!herma.home().join("landed").join(format!("{run}.json")).exists(), "round {round}");
        herma.assert_verifies(&herma.bundle(run));
    }
}

/// Only the content of the evidence is accepted.
#[test]
fn only_a_landed_branch_that_still_exists_is_accepted() {
    let (herma, owned) = Herma::with_target(&[]);
    let git = |args: &[&str]| owned.repository.git(args);

    let run = land(&herma);
    let (id, name) = (run.to_string(), format!("refs/heads/herma/{run}"));
    let ours = branch(&owned, run).unwrap();
    git(&["update-ref", &name, "refs/heads/main"]);
    refused(&herma, run, &accept(&herma, &id), "somebody moved it, so nothing was done");
    git(&["update-ref", "-d", &name]);
    refused(&herma, run, &accept(&herma, &id), "is not there any more, so it cannot be accepted");
    git(&["update-ref", &name, &ours]);
    let remembered = herma.home().join("landed").join(format!("{run}.json"));
    let sound = fs::read(&remembered).unwrap();
    fs::remove_file(&remembered).unwrap();
    refused(&herma, run, &accept(&herma, &id), "herma does not remember it");
    fs::write(&remembered, sound).unwrap();
    assert_eq!(accept(&herma, &id).code, Some(0));
    assert_eq!(branch(&owned, run), Some(ours));

    // A rejection is not undone by taking its file away.
    let run = land(&herma);
    assert_eq!(reject(&herma, &run.to_string()).code, Some(0));
    fs::remove_file(outcome_file(&herma, run)).unwrap();
    let ended = accept(&herma, &run.to_string());
    assert_eq!(ended.code, Some(3), "{ended:#?}");
    assert!(ended.stderr.contains("was already rejected; an outcome is final"), "{ended:#?}");
    assert_eq!(listed(&herma, run)["outcome"]["state"], "void");
    assert!(!outcome_file(&herma, run).exists());
    assert!(!format!("{ended:?}").contains(owned.repository.dir.to_str().unwrap()), "{ended:#?}");
    assert_eq!(branch(&owned, run), None);
}

/// Write access to the home does not delete or accept a branch of another run.
#[test]
fn the_landing_record_must_match_the_evidence() {
    let (herma, owned) = Herma::with_target(&[]);
    let (one, other) = (land(&herma), land(&herma));
    let file = |run: RunId| herma.home().join("landed").join(format!("{run}.json"));
    let read = |run: RunId| serde_json::from_slice::<Value>(&fs::read(file(run)).unwrap()).unwrap();
    let (sound, others) = (read(one), read(other));
    let before = owned.picture();
    let main = owned.repository.git(&["rev-parse", "main~1"]).trim().to_owned();

    let mut swapped = sound.clone();
    swapped["landing"] = others["landing"].clone();
    let with = |key: &str, value: &str| {
        let mut changed = sound.clone();
        changed["landing"][key] = value.into();
        changed
    };
    for (changed, what) in [
        (swapped, "the branch differs"),
        (others, "the run differs"),
        (with("reference", &format!("refs/heads/herma/{other}")), "the branch differs"),
        (with("commit", &main), "the commit differs"),
        (with("base", &main), "the base differs"),
        (with("tree", &main), "the tree differs"),
    ] {
        fs::write(file(one), serde_json::to_vec(&changed).unwrap()).unwrap();
        for ended in [accept(&herma, &one.to_string()), reject(&herma, &one.to_string())] {
            refused(&herma, one, &ended, what);
        }
        assert!(owned.picture() == before, "{what}: the target was touched");
    }

    // Nor is a bundle believed that does not hold.
    fs::write(file(one), serde_json::to_vec(&sound).unwrap()).unwrap();
    let log = herma.bundle(one).dir.join("test.log");
    let whole = fs::read(&log).unwrap();
    fs::write(&log, "another\n").unwrap();
    refused(&herma, one, &reject(&herma, &one.to_string()), "cannot be accepted or rejected");
    assert!(owned.picture() == before);
    fs::write(&log, whole).unwrap();

    // Nor one in the place of another.
    let (home, of) = (herma.home().join("runs"), |run: RunId| herma.bundle(run).dir);
    fs::rename(of(one), home.join("aside")).unwrap();
    fs::rename(of(other), of(one)).unwrap();
    for ended in [accept(&herma, &one.to_string()), reject(&herma, &one.to_string())] {
        assert_ne!(ended.code, Some(0), "{ended:#?}");
    }
    assert!(owned.picture() == before);
    fs::rename(of(one), of(other)).unwrap();
    fs::rename(home.join("aside"), of(one)).unwrap();

    assert_eq!(reject(&herma, &one.to_string()).code, Some(0));
    assert_eq!((branch(&owned, one), branch(&owned, other).is_some()), (None, true));
}

/// A file that counts for nothing does not keep a branch in the target.
#[test]
fn a_void_outcome_is_no_obstacle_to_a_reject() {
    let (herma, owned) = Herma::with_target(&[]);
    let run = land(&herma);
    let id = run.to_string();
    fs::write(outcome_file(&herma, run), "accepted\n").unwrap();
    assert_eq!(listed(&herma, run)["outcome"]["state"], "void");
    let ended = accept(&herma, &id);
    assert_eq!(ended.code, Some(3), "{ended:#?}");
    assert!(ended.stderr.contains("has an outcome that does not count"), "{ended:#?}");
    assert!(branch(&owned, run).is_some());
    let ended = reject(&herma, &id);
    assert_eq!(ended.code, Some(0), "{ended:#?}");
    assert_eq!((branch(&owned, run), &listed(&herma, run)["outcome"]["state"]), (None, &"rejected".into()));
    herma.assert_verifies(&herma.bundle(run));

    // One that counts is never replaced, also where what was remembered is still there.
    let run = land(&herma);
    let remembered = herma.home().join("landed").join(format!("{run}.json"));
    let kept = fs::read(&remembered).unwrap();
    assert_eq!(accept(&herma, &run.to_string()).code, Some(0));
    fs::write(&remembered, kept).unwrap();
    let said = fs::read(outcome_file(&herma, run)).unwrap();
    let ended = reject(&herma, &run.to_string());
    assert_eq!(ended.code, Some(3), "{ended:#?}");
    assert!(ended.stderr.contains("was already accepted"), "{ended:#?}");
    assert!(branch(&owned, run).is_some() && fs::read(outcome_file(&herma, run)).unwrap() == said);
}
