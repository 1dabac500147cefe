//! A bundle behind a proof that breaks takes the proof away, and the run that broke is named.

use std::fs;
use std::path::Path;

use herma_core::proof::{BundleRef, Proof};
use herma_core::{Blocker, RunId, Status};
use herma_evidence::layout;

use super::{assert_never_began, blockers, kept, missing, proof, run_stub, rungs, states};
use crate::kit::{Herma, everything_below, names, run_tool};

/// `herma ladder` names the run, by word and in JSON, and what leans on the proof is blocked with that name.
fn assert_taken_away(herma: &Herma, stage: u8, run: RunId, what: &str) {
    let (standing, detail) = &rungs(herma)[&u64::from(stage)];
    assert_eq!(standing, "broken", "{what}: {detail}");
    assert!(detail.contains(&format!("the bundle of run {run}")), "{what}: {detail}");
    let blocked = run_stub(herma, &[]);
    assert_never_began(&blocked);
    assert_eq!(blockers(&blocked), [Blocker::StageUnproven], "{what}");
    let why = &missing(&blocked)[0].1;
    assert!(why.contains(&run.to_string()), "{what}: {why}");
}

fn bundle_of<'a>(proof: &'a Proof, case: &str) -> &'a BundleRef {
    proof.bundles.iter().find(|bundle| bundle.case == case).unwrap()
}

fn copy(from: &Path, to: &Path) {
    run_tool("cp", &["-a".as_ref(), from.as_os_str(), to.as_os_str()], &[]);
}

/// Puts the bundle back as it was.
fn restore(dir: &Path, sound: &Path) {
    fs::remove_dir_all(dir).unwrap();
    copy(sound, dir);
}

#[test]
fn each_file_of_a_bundle_that_is_changed_or_gone_takes_the_proof_away() {
    let herma = Herma::stub_proven(2);
    let run = bundle_of(&kept(&herma, 2), "pass").run_id;
    let (dir, sound) = (herma.bundle(run).dir, herma.at("sound"));
    copy(&dir, &sound);
    let files: Vec<_> =
        everything_below(&sound).into_keys().filter(|path| sound.join(path).is_file()).collect();
    // All that a bundle can have but the calls of models and an environment, which this contract does not have.
    let others = [layout::REPORT, layout::ATTESTATION, layout::TRANSCRIPT];
    assert_eq!(files.len(), layout::EXPECTED.len() - 1 + others.len(), "{files:?}");
    for (n, file) in files.iter().enumerate() {
        let (file, what) = (dir.join(file), file.display());
        let mut bytes = fs::read(&file).unwrap();
        if let Some(at) = bytes.len().checked_sub(1).map(|last| (n * 7919) % (last + 1)) {
            bytes[at] ^= 1;
            fs::write(&file, &bytes).unwrap();
            assert_taken_away(&herma, 2, run, &format!("{what}: byte {at} flipped"));
        }
        fs::remove_file(&file).unwrap();
        assert_taken_away(&herma, 2, run, &format!("{what}: deleted"));
        restore(&dir, &sound);
    }
    // Restored bytes are valid again: a proof is about bytes.
    assert_eq!(states(&herma)[..2], ["proven", "proven"]);
    run_stub(&herma, &[]).assert_pass();
}

#[test]
fn a_bundle_with_more_in_it_or_of_another_run_takes_the_proof_away() {
    let herma = Herma::stub_proven(2);
    let proven = kept(&herma, 2);
    let run = bundle_of(&proven, "pass").run_id;
    let (dir, sound) = (herma.bundle(run).dir, herma.at("sound"));
    copy(&dir, &sound);
    let other = |case: &str| herma.bundle(bundle_of(&proven, case).run_id).dir;
    let damages: [(&str, &dyn Fn()); 8] = [
        ("an extra file", &|| fs::write(dir.join("extra"), "").unwrap()),
        ("an extra file deeper", &|| fs::write(dir.join("engine/extra"), "").unwrap()),
        ("an outcome that nobody gave", &|| fs::write(dir.join(layout::OUTCOME), "{}").unwrap()),
        ("a link to the same bytes", &|| {
            fs::remove_file(dir.join(layout::PATCH)).unwrap();
            std::os::unix::fs::symlink(sound.join(layout::PATCH), dir.join(layout::PATCH)).unwrap();
        }),
        ("nothing", &|| fs::remove_dir_all(&dir).unwrap()),
        ("a file instead", &|| {
            fs::remove_dir_all(&dir).unwrap();
            fs::write(&dir, "").unwrap();
        }),
        ("the bundle of another case", &|| restore(&dir, &other("no diff"))),
        ("the bundle of another lane with the same contract", &|| restore(&dir, &other("baseline"))),
    ];
    for (what, damage) in damages {
        damage();
        assert_taken_away(&herma, 2, run, what);
        let _ = fs::remove_file(&dir);
        let _ = fs::remove_dir_all(&dir);
        copy(&sound, &dir);
    }
    assert_eq!(states(&herma)[..2], ["proven", "proven"]);
}

/// Passes are not all that counts: the failures and the baseline support the proof as well.
#[test]
fn every_bundle_behind_a_proof_counts() {
    let herma = Herma::stub_proven(2);
    for stage in [1, 2] {
        for bundle in &kept(&herma, stage).bundles {
            let file = herma.bundle(bundle.run_id).dir.join(layout::EVENTS);
            let sound = fs::read(&file).unwrap();
            fs::write(&file, &sound[1..]).unwrap();
            assert_taken_away(&herma, stage, bundle.run_id, &bundle.case);
            fs::write(&file, &sound).unwrap();
        }
    }
}

#[test]
fn proving_again_repairs_a_broken_proof() {
    let herma = Herma::stub_proven(3);
    let first = bundle_of(&kept(&herma, 1), "pass").run_id;
    fs::remove_dir_all(herma.bundle(first).dir).unwrap();
    assert_taken_away(&herma, 1, first, "deleted");
    // The stages above lean on it.
    assert_eq!(states(&herma)[..3], ["broken", "proven", "proven"]);
    let above = herma.prove(4, &[]);
    assert_eq!(above.code, Some(3), "{above:#?}");
    let reason = &proof(&above).reasons[0];
    assert!(
        reason.starts_with("stage 1 is not proven any more") && reason.contains(&first.to_string()),
        "{reason}"
    );

    let proven = herma.prove(1, &[]);
    assert_eq!((proven.code, proof(&proven).status), (Some(0), Status::Pass), "{proven:#?}");
    assert_eq!(states(&herma)[..3], ["proven", "proven", "proven"]);
    run_stub(&herma, &[]).assert_pass();
    assert!(!proof(&proven).bundles.iter().any(|bundle| bundle.run_id == first));
}

/// A person's acceptance is part of the proof of stage 5, and so is that person's right to give it.
#[test]
fn an_outcome_that_is_changed_or_whose_operator_is_revoked_takes_the_proof_away() {
    let herma = Herma::stub_proven(5);
    let proven = kept(&herma, 5);
    let leans: Vec<&str> =
        proven.bundles.iter().filter(|b| b.outcome.is_some()).map(|b| b.case.as_str()).collect();
    assert_eq!(leans, ["pass", "missing outcome", "baseline"]);
    for case in leans {
        let run = bundle_of(&proven, case).run_id;
        let file = herma.bundle(run).dir.join(layout::OUTCOME);
        let sound = fs::read(&file).unwrap();
        let broken = |what: &str| {
            let (state, detail) = &rungs(&herma)[&5];
            assert_eq!(state, "broken", "{case}: {what}: {detail}");
            assert!(detail.contains(&run.to_string()), "{case}: {what}: {detail}");
        };
        let text = String::from_utf8(sound.clone()).unwrap();
        let turned = if text.contains("accepted") {
            text.replace("accepted", "rejected")
        } else {
            text.replace("rejected", "accepted")
        };
        assert_ne!(turned, text);
        fs::write(&file, turned).unwrap();
        broken("turned round");
        fs::remove_file(&file).unwrap();
        broken("deleted");
        let others = bundle_of(&proven, if case == "pass" { "baseline" } else { "pass" }).run_id;
        fs::copy(herma.bundle(others).dir.join(layout::OUTCOME), &file).unwrap();
        if others != run {
            broken("of another run");
        }
        fs::write(&file, &sound).unwrap();
    }
    assert_eq!(states(&herma)[4], "proven");
    let revoked = herma.run(&["approver", "revoke", "robin", "--reason", "left", "--last"]);
    assert_eq!(revoked.code, Some(0), "{revoked:#?}");
    assert_eq!(states(&herma), ["proven", "proven", "proven", "proven", "broken", "unproven"]);
    assert!(names(&herma.home().join("proofs/stub")).contains(&"stage-5.json".to_owned()));
}
