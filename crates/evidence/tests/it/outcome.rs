//! The outcome: signed by an approver, for this evidence and no other, and only where it was requested.

use std::fs;
use std::path::Path;
use std::sync::LazyLock;

use herma_core::outcome::{Outcome, OutcomeSchema, OutcomeWord};
use herma_core::report::OutcomeState;
use herma_core::signed::Signed;
use herma_core::{Digest, Report, RunId, Timestamp};
use herma_evidence::verify::{CheckName as C, CheckOutcome};
use herma_evidence::{ApproverKey, CheckList, Signer, Trust, TrustedApprover, layout, signed};
use proptest::prelude::*;

use crate::sample::{Sample, check_with, failed, pass, run_id};

static KEY: LazyLock<ApproverKey> = LazyLock::new(|| ApproverKey::generate().unwrap());

/// A bundle with a pending outcome. It landed nothing, so the agreement check fails for its own reason.
fn pending() -> Sample {
    pass(|report| {
        report.outcome = OutcomeState::Pending;
        report.outcome_due = Some(at(200));
    })
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_700_000_000 + second).unwrap()
}

fn word(sample: &Sample) -> Outcome {
    Outcome {
        trust_head: None,
        schema: OutcomeSchema::V1,
        run_id: run_id(),
        attestation: Digest::of(&fs::read(sample.dir().join(layout::ATTESTATION)).unwrap()),
        outcome: OutcomeWord::Accepted,
        reason: "it is what I asked for".to_owned(),
        operator: "alice".parse().unwrap(),
        decided_at: at(100),
    }
}

fn give(sample: &Sample, signed: &Signed<Outcome>) {
    let text = serde_json::to_string_pretty(signed).unwrap() + "\n";
    fs::write(sample.dir().join(layout::OUTCOME), text).unwrap();
}

fn accept(sample: &Sample, change: impl FnOnce(&mut Outcome)) {
    let mut outcome = word(sample);
    change(&mut outcome);
    give(sample, &signed::sign(outcome, &*KEY).unwrap());
}

fn check(sample: &Sample) -> CheckList {
    check_trusting(sample, vec![approver(Some("alice"), &KEY)])
}

fn approver(name: Option<&str>, key: &ApproverKey) -> TrustedApprover {
    TrustedApprover { name: name.map(|name| name.parse().unwrap()), key: key.public() }
}

fn check_trusting(sample: &Sample, approvers: Vec<TrustedApprover>) -> CheckList {
    check_with(&sample.dir(), &Trust { keys: vec![sample.key.public()], approvers })
}

/// The result of the outcome check and its detail.
fn said(sample: &Sample) -> (CheckOutcome, String) {
    said_in(check(sample))
}

fn said_in(list: CheckList) -> (CheckOutcome, String) {
    let check = list.checks.into_iter().find(|check| check.name == C::Outcome).unwrap();
    (check.outcome, check.detail)
}

fn refused(sample: &Sample, why: &str) {
    let (outcome, detail) = said(sample);
    assert_eq!(outcome, CheckOutcome::Failed, "{detail}");
    assert!(detail.contains(why), "{detail}");
    assert!(!failed(&check(sample)).contains(&C::Files), "the file itself may be there");
}

#[test]
fn a_bundle_without_an_outcome_says_whether_one_is_asked_for() {
    assert_eq!(said(&pass(|_| {})), (CheckOutcome::NotApplicable, "not required".to_owned()));
    assert_eq!(said(&pending()), (CheckOutcome::NotApplicable, "pending".to_owned()));
}

#[test]
fn an_approvers_outcome_passes_and_breaks_nothing_else() {
    let sample = pending();
    let before = failed(&check(&sample));
    accept(&sample, |_| {});
    let (outcome, detail) = said(&sample);
    assert_eq!(outcome, CheckOutcome::Passed, "{detail}");
    assert_eq!(detail, format!("accepted by alice, signed with {}", KEY.key_id()));
    assert_eq!(failed(&check(&sample)), before);
    accept(&sample, |outcome| outcome.outcome = OutcomeWord::Rejected);
    assert!(said(&sample).1.starts_with("rejected by alice"));
}

#[test]
fn an_outcome_for_another_run_is_refused() {
    let sample = pending();
    accept(&sample, |outcome| outcome.run_id = RunId::new(at(0), [8; 10]));
    refused(&sample, "it is the outcome of run");
    accept(&sample, |outcome| outcome.attestation = Digest::of(b"another"));
    refused(&sample, "it is on other evidence");
    let unasked = pass(|_| {});
    accept(&unasked, |_| {});
    refused(&unasked, "asks for no outcome");
    assert_eq!(failed(&check(&unasked)), [C::Outcome]);
}

/// The same run, attested again after a change: the outcome referred to the earlier evidence.
#[test]
fn an_outcome_does_not_apply_to_other_evidence_of_the_run() {
    let (sample, other) = (
        pending(),
        pass(|report: &mut Report| {
            report.outcome = OutcomeState::Pending;
            report.outcome_due = Some(at(200));
            report.walls.push("seccomp".to_owned());
        }),
    );
    accept(&sample, |_| {});
    fs::copy(sample.dir().join(layout::OUTCOME), other.dir().join(layout::OUTCOME)).unwrap();
    refused(&other, "it is on other evidence");
}

#[test]
fn a_late_acceptance_is_none_and_a_late_rejection_is_one() {
    let sample = pending();
    accept(&sample, |outcome| outcome.decided_at = at(201));
    refused(&sample, "had to be until");
    accept(&sample, |outcome| {
        outcome.decided_at = at(201);
        outcome.outcome = OutcomeWord::Rejected;
    });
    assert_eq!(said(&sample).0, CheckOutcome::Passed);
}

#[test]
fn only_an_approver_can_say_it() {
    let sample = pending();
    let stranger = ApproverKey::generate().unwrap();
    give(&sample, &signed::sign(word(&sample), &stranger).unwrap());
    refused(&sample, "is not known as an approver");
    let renamed = Signed { key_id: KEY.key_id(), ..signed::sign(word(&sample), &stranger).unwrap() };
    give(&sample, &renamed);
    refused(&sample, "the signature is not that of");
    // The installation key signs evidence. The user who runs herma can use it, so it signs no outcome.
    give(&sample, &signed::sign(word(&sample), &sample.key).unwrap());
    refused(&sample, "is not known as an approver");
}

/// Two people are trusted, and each speaks in their own name only.
#[test]
fn no_approver_speaks_in_anothers_name() {
    let (sample, mallory) = (pending(), ApproverKey::generate().unwrap());
    give(&sample, &signed::sign(word(&sample), &mallory).unwrap());
    let (alice, named) = (approver(Some("alice"), &KEY), approver(Some("mallory"), &mallory));
    let (outcome, detail) = said_in(check_trusting(&sample, vec![alice.clone(), named.clone()]));
    assert_eq!(outcome, CheckOutcome::Failed, "{detail}");
    assert_eq!(detail, "it names alice as its operator, and mallory signed it");
    // A key given without a name has no name to compare.
    for approvers in [vec![approver(None, &mallory)], vec![named, alice, approver(None, &mallory)]] {
        assert_eq!(said_in(check_trusting(&sample, approvers)).0, CheckOutcome::Passed);
    }
}

#[test]
fn only_one_spelling_is_taken() {
    let sample = pending();
    accept(&sample, |_| {});
    let path = sample.dir().join(layout::OUTCOME);
    let sound = fs::read_to_string(&path).unwrap();
    let compact = serde_json::to_string(&serde_json::from_str::<serde_json::Value>(&sound).unwrap()).unwrap();
    for odd in [
        compact,
        sound.trim_end().to_owned(),
        format!("{sound}\n"),
        sound.replace("\"accepted\"", "\"\\u0061ccepted\""),
        sound.replacen("{\n", "{\n  \"note\": 1,\n", 1),
        String::new(),
        "x".to_owned(),
    ] {
        fs::write(&path, &odd).unwrap();
        assert_eq!(said(&sample).0, CheckOutcome::Failed, "{odd}");
    }
}

#[test]
fn a_link_or_a_flood_in_place_of_an_outcome_is_found() {
    let sample = pending();
    accept(&sample, |_| {});
    let (path, elsewhere) = (sample.dir().join(layout::OUTCOME), sample.temp.path().join("elsewhere"));
    fs::rename(&path, &elsewhere).unwrap();
    std::os::unix::fs::symlink(&elsewhere, &path).unwrap();
    assert_eq!(failed(&check(&sample))[0], C::Files);
    fs::remove_file(&path).unwrap();
    fs::write(&path, vec![b' '; 5 << 20]).unwrap();
    refused(&sample, "is larger than");
}

fn flipped(path: &Path, at: usize, bit: u32) -> Vec<u8> {
    let mut bytes = fs::read(path).unwrap();
    bytes[at] ^= 1u8 << bit;
    bytes
}

#[test]
fn every_flipped_byte_of_an_outcome_is_found() {
    let sample = pending();
    accept(&sample, |_| {});
    let path = sample.dir().join(layout::OUTCOME);
    let sound = fs::read(&path).unwrap();
    for at in 0..sound.len() {
        fs::write(&path, flipped(&path, at, u32::try_from(at).unwrap() % 8)).unwrap();
        let failed = failed(&check(&sample));
        assert!(failed.contains(&C::Outcome), "byte {at}: {failed:?}");
        fs::write(&path, &sound).unwrap();
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn every_flipped_bit_of_an_outcome_is_found(at in any::<prop::sample::Index>(), bit in 0u32..8) {
        static SAMPLE: LazyLock<Sample> = LazyLock::new(|| { let sample = pending(); accept(&sample, |_| {}); sample });
        let path = SAMPLE.dir().join(layout::OUTCOME);
        let sound = fs::read(&path).unwrap();
        fs::write(&path, flipped(&path, at.index(sound.len()), bit)).unwrap();
        let outcome = said(&SAMPLE).0;
        fs::write(&path, &sound).unwrap();
        prop_assert_eq!(outcome, CheckOutcome::Failed);
    }
}
