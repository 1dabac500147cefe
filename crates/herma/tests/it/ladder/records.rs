//! A proof counts only as herma signed it here, for this engine and stage, with this program and this version.

use std::fs;
use std::path::Path;

use herma_core::proof::Proof;
use herma_core::{Blocker, Digest, Stage, Status};
use herma_evidence::{InstallationKey, signed};
use serde_json::Value;

use super::{assert_never_began, blockers, kept, missing, run_stub, rungs};
use crate::kit::{Herma, names, run_tool};

/// The stage whose record is meddled with.
const STAGE: u8 = 2;

/// The record of the stage does not count, for a reason with these words in it, and nothing runs on it.
fn assert_broken(herma: &Herma, what: &str, words: &str) {
    let (state, detail) = &rungs(herma)[&u64::from(STAGE)];
    assert_eq!(state, "broken", "{what}: {detail}");
    assert!(detail.contains(words), "{what}: {detail}");
    let run = run_stub(herma, &[]);
    assert_never_began(&run);
    assert_eq!(blockers(&run), [Blocker::StageUnproven], "{what}");
    let why = &missing(&run)[0].1;
    assert!(
        why.contains(&format!("lost its proof of stage {STAGE}")) && why.contains(words),
        "{what}: {why}"
    );
    let above = herma.prove(STAGE + 1, &[]);
    assert_eq!(above.code, Some(3), "{what}: {above:#?}");
}

/// Signs a record with the installation's own key.
fn sign_here(herma: &Herma, record: Proof) -> Vec<u8> {
    let key = InstallationKey::load_or_create(&herma.home().join("keys")).unwrap();
    serde_json::to_vec_pretty(&signed::sign(record, &key).unwrap()).unwrap()
}

#[test]
fn a_record_that_was_written_by_hand_is_none() {
    let herma = Herma::stub_proven(STAGE);
    let file = herma.proof("stub", STAGE);
    let sound = fs::read(&file).unwrap();
    let edited = |change: fn(&mut Value)| {
        let mut value: Value = serde_json::from_slice(&sound).unwrap();
        change(&mut value);
        serde_json::to_vec_pretty(&value).unwrap()
    };
    let unsigned = "was not signed here";
    let unread = "its proof cannot be read";
    let cases: [(&str, Vec<u8>, &str); 11] = [
        ("empty", Vec::new(), unread),
        ("cut off", sound[..sound.len() / 2].to_vec(), unread),
        ("the record alone", edited(|v| *v = v["record"].clone()), unread),
        ("more", edited(|v| v["record"]["more"] = true.into()), unread),
        ("a default", edited(|v| v["record"]["runtime_default_activation"] = true.into()), unread),
        ("another status", edited(|v| v["record"]["status"] = "fail".into()), unsigned),
        ("fewer bundles", edited(|v| v["record"]["bundles"] = Value::Array(Vec::new())), unsigned),
        ("another stage", edited(|v| v["record"]["stage"] = 3.into()), unsigned),
        ("another time", edited(|v| v["record"]["proven_at"] = "2999-01-01T00:00:00Z".into()), unsigned),
        ("no signature", edited(|v| v["signature"] = "".into()), unsigned),
        ("another key", edited(|v| v["key_id"] = Digest::of(b"").to_string().into()), unsigned),
    ];
    for (what, bytes, words) in cases {
        fs::write(&file, bytes).unwrap();
        assert_broken(&herma, what, words);
    }
    fs::remove_file(&file).unwrap();
    fs::create_dir(&file).unwrap();
    assert_broken(&herma, "a directory", unread);
    fs::remove_dir(&file).unwrap();
    fs::write(&file, &sound).unwrap();
    run_stub(&herma, &[]).assert_pass();
}

#[test]
fn a_record_of_something_else_is_none() {
    let herma = Herma::stub_proven(STAGE);
    let file = herma.proof("stub", STAGE);
    let sound = fs::read(&file).unwrap();
    let record = || kept(&herma, STAGE);
    let other = Digest::of(b"another program");
    let cases: [(&str, Proof, &str); 6] = [
        ("another engine's", Proof { engine: "fake".parse().unwrap(), ..record() }, "is of `fake`, stage 2"),
        ("another stage's", Proof { stage: Stage::CopiedRepo, ..record() }, "is of `stub`, stage 3"),
        ("a failure", Proof { status: Status::Fail, ..record() }, "the last attempt to prove it was a fail"),
        (
            "another version's",
            Proof { herma_version: "0.0.9".to_owned(), ..record() },
            "stale: proven with herma 0.0.9",
        ),
        (
            "another program's",
            Proof { engine_digest: Some(other), ..record() },
            "it is stale: proven was sha256:",
        ),
        ("no program's", Proof { engine_digest: None, ..record() }, "it is stale: proven was nothing"),
    ];
    // All of them are signed by the right key: what counts is what they say.
    for (what, record, words) in cases {
        fs::write(&file, sign_here(&herma, record)).unwrap();
        assert_broken(&herma, what, words);
        fs::write(&file, &sound).unwrap();
    }
    fs::copy(herma.proof("stub", 1), &file).unwrap();
    assert_broken(&herma, "the file of the stage below", "is of `stub`, stage 1");
    // Signed once more with the key of this installation it is what it was.
    fs::write(&file, &sound).unwrap();
    fs::write(&file, sign_here(&herma, record())).unwrap();
    run_stub(&herma, &[]).assert_pass();
}

/// The same program, proven elsewhere, with all evidence of the proof: it is not proven here.
#[test]
fn the_proofs_of_another_installation_are_none_here() {
    let (there, here) = (Herma::stub_proven(STAGE), Herma::with_stub());
    for name in ["proofs", "runs"] {
        let (from, to) = (there.home().join(name), here.home().join(name));
        let _ = fs::remove_dir_all(&to);
        run_tool("cp", &["-a".as_ref(), from.as_os_str(), to.as_os_str()], &[]);
    }
    for stage in 1..=u64::from(STAGE) {
        let (state, detail) = &rungs(&here)[&stage];
        assert_eq!(state, "broken", "{detail}");
        assert!(detail.contains("was not signed here"), "{detail}");
    }
    let contract = here.contract(&[]);
    let ended = here.run(&["run", contract.to_str().unwrap(), "--engine", "stub", "--json"]);
    assert_eq!(ended.code, Some(3), "{ended:#?}");
    assert_eq!(ended.json()["engine_started"], false);
}

/// Proofs and admissions count only under the key that signed them.
#[test]
fn with_another_installation_key_nothing_is_proven() {
    let herma = Herma::stub_proven(STAGE);
    for name in ["installation.key", "installation.pub"] {
        fs::remove_file(herma.home().join("keys").join(name)).unwrap();
    }
    for stage in 1..=u64::from(STAGE) {
        let (state, detail) = &rungs(&herma)[&stage];
        assert_eq!(state, "broken", "{detail}");
        assert!(detail.contains("was not signed here"), "{detail}");
    }
    let run = run_stub(&herma, &[]);
    assert_never_began(&run);
    // The trust chain belongs to the lost key as well, so no admission counts and no stage can be proven again.
    assert_eq!(blockers(&run), [Blocker::StageUnproven, Blocker::EngineNotAdmitted]);
    assert_eq!(herma.prove(1, &[]).code, Some(3));
    assert_eq!(rungs(&herma)[&1].0, "broken");
}

/// The attempt that failed takes the place of the proof before it; a blocked one leaves it.
#[test]
fn a_failed_attempt_takes_the_proof_away_and_a_blocked_one_leaves_it() {
    let herma = Herma::stub_proven(STAGE);
    let files =
        |dir: &Path| names(dir).into_iter().map(|n| fs::read(dir.join(n)).unwrap()).collect::<Vec<_>>();
    let dir = herma.home().join("proofs/stub");
    let before = files(&dir);
    herma.json(&["engines", "disable", "stub", "--json"]);
    let blocked = herma.prove(STAGE, &[]);
    assert_eq!(blocked.code, Some(3), "{blocked:#?}");
    let proof = super::proof(&blocked);
    assert!(proof.reasons[0].contains("engine_disabled"), "{:#?}", proof.reasons);
    assert_eq!(proof.rows.len(), 1, "where nothing passes no failure class is tried");
    assert_eq!(files(&dir), before);
    herma.json(&["engines", "enable", "stub", "--json"]);
    run_stub(&herma, &[]).assert_pass();

    // A program with the right name that does nothing: the pass case fails, and so does the stage.
    let lazy =
        "#!/bin/sh\n[ \"$1\" = --identity ] && echo '{\"engine\":\"stub\",\"version\":\"0.1.0\"}'\nexit 0\n";
    herma.program("home/programs/herma-stub", &herma.file("lazy", lazy));
    herma.admit_stub(&[]);
    assert_eq!(herma.prove(1, &[]).code, Some(0), "at stage 1 nothing is started");
    let failed = herma.prove(STAGE, &[]);
    assert_eq!(failed.code, Some(1), "{failed:#?}");
    let (state, detail) = &rungs(&herma)[&u64::from(STAGE)];
    assert_eq!((state.as_str(), detail.as_str()), ("broken", "the last attempt to prove it was a fail"));
    let run = run_stub(&herma, &[]);
    assert_never_began(&run);
    assert_eq!(blockers(&run), [Blocker::StageUnproven]);
}
