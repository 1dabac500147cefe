//! Every reason against the use of an approval.

use herma_core::approval::{Answer, Approval, ApprovalState, Binding, Moved};
use herma_core::blocker::{Blocker, BlockerRecord};
use herma_core::engine::DestinationKind;
use herma_core::store::{StoreError, StoreErrorKind};
use herma_core::{Digest, Stage};
use herma_store::{BlockingStore, StoreLocation};
use proptest::prelude::*;

use super::super::usable::{Consumption, UsableApproval, consume, find_usable};
use super::fixed_store::{FixedStore, holds};
use super::{Believes, approval, at, binding, granted, now, request, ruling, run, signed};

const BOTH: Believes = Believes(&["alice", "bob"]);

#[track_caller]
fn found(approvals: Vec<Approval>) -> Result<UsableApproval, BlockerRecord> {
    find_usable(&holds(approvals), &BOTH, &binding(), now(), false)
}

#[track_caller]
fn blocked(approvals: Vec<Approval>, blocker: Blocker, words: &str) {
    says(&found(approvals).unwrap_err(), blocker, words);
}

#[track_caller]
fn says(record: &BlockerRecord, blocker: Blocker, words: &str) {
    assert_eq!(record.blocker, blocker, "{record:?}");
    assert!(record.detail.contains(words), "{}", record.detail);
}

fn with(mut approval: Approval, change: impl FnOnce(&mut Binding)) -> Approval {
    change(&mut approval.request.binding);
    let ruling = approval.ruling.take();
    approval.ruling = ruling.map(|mut signed| {
        signed.record.request = approval.request.clone();
        signed
    });
    approval
}

#[test]
fn an_exact_granted_one_is_found_also_behind_newer_ones_that_are_none() {
    assert_eq!(found(vec![granted(1)]).unwrap().approval, granted(1));
    let newer = [ApprovalState::Requested, ApprovalState::Denied, ApprovalState::Consumed];
    let mut approvals: Vec<_> = newer.map(|state| approval(request(2), state)).to_vec();
    approvals.push(with(granted(3), |binding| binding.base = "another".to_owned()));
    approvals.push(granted(1));
    assert_eq!(found(approvals).unwrap().approval, granted(1));
}

#[test]
fn without_any_it_is_said_how_to_ask() {
    blocked(
        vec![],
        Blocker::ApprovalVoid,
        "there is no approval of this contract; ask with `herma approvals request`",
    );
}

#[test]
fn a_request_is_not_an_approval() {
    let requested = approval(request(1), ApprovalState::Requested);
    blocked(vec![requested], Blocker::ApprovalVoid, "requested, not granted: approval ");
}

#[test]
fn a_denial_is_told_with_its_reason_and_only_where_a_person_signed_it() {
    let denied = approval(request(1), ApprovalState::Denied);
    blocked(vec![denied.clone()], Blocker::ApprovalDenied, "`alice` denied approval");
    let forged = Approval { ruling: None, ..denied };
    blocked(vec![forged], Blocker::ApprovalVoid, "nobody's signature is under it");
}

#[test]
fn an_approval_is_over_at_its_time_whatever_the_store_says() {
    let over = |second| find_usable(&holds(vec![granted(1)]), &BOTH, &binding(), at(second), false);
    assert!(over(999).is_ok());
    says(&over(1_000).unwrap_err(), Blocker::ApprovalExpired, "was good until 2027-01-15T08:16:40Z");
    blocked(
        vec![approval(request(1), ApprovalState::Expired)],
        Blocker::ApprovalExpired,
        "nobody had granted it",
    );
}

#[test]
fn an_approval_is_good_only_at_or_after_its_request_and_its_grant() {
    let used_at = |second| find_usable(&holds(vec![granted(1)]), &BOTH, &binding(), at(second), false);
    assert!(used_at(50).is_ok(), "the moment of the grant is in time");
    let early = used_at(49).unwrap_err();
    says(&early, Blocker::ApprovalVoid, "was granted at 2027-01-15T08:00:50Z, and the clock says");

    let mut before_its_request = granted(1);
    before_its_request.ruling = before_its_request.ruling.map(|mut signed| {
        signed.record.at = at(0);
        signed
    });
    blocked(
        vec![before_its_request],
        Blocker::ApprovalVoid,
        "before it was asked for at 2027-01-15T08:00:01Z",
    );
}

#[test]
fn a_used_one_names_the_run_that_used_it() {
    let consumed = approval(request(1), ApprovalState::Consumed);
    blocked(vec![consumed], Blocker::ApprovalAlreadyConsumed, &format!("was used by run {}", run(7)));
}

#[test]
fn the_newest_answer_is_told_and_a_question_that_lapsed_does_not_hide_it() {
    let states = |newest, older| vec![approval(request(2), newest), approval(request(1), older)];
    let (denied, consumed) = (ApprovalState::Denied, ApprovalState::Consumed);
    blocked(states(denied, consumed), Blocker::ApprovalDenied, "");
    blocked(states(consumed, denied), Blocker::ApprovalAlreadyConsumed, "");
    blocked(states(ApprovalState::Expired, denied), Blocker::ApprovalDenied, "");
    blocked(states(ApprovalState::Requested, denied), Blocker::ApprovalVoid, "requested, not granted");
}

#[test]
fn a_grant_that_the_store_made_up_is_none() {
    let no_word = Approval { ruling: None, ..granted(1) };
    blocked(vec![no_word], Blocker::ApprovalVoid, "nobody's signature is under it");

    let denied = signed(ruling(&request(1), Answer::Denied), "alice");
    let turned = Approval { ruling: Some(denied), ..granted(1) };
    blocked(vec![turned], Blocker::ApprovalVoid, "that is not what `alice` signed");

    let of_another = Approval { ruling: granted(2).ruling, ..granted(1) };
    blocked(vec![of_another], Blocker::ApprovalVoid, "another request");

    let mut renamed = granted(1);
    renamed.ruling = Some(signed(
        herma_core::approval::Ruling { id: request(2).id, ..ruling(&request(1), Answer::Granted) },
        "alice",
    ));
    blocked(vec![renamed], Blocker::ApprovalVoid, "another request");

    let mut longer = granted(1);
    longer.request.expires_at = at(9_000);
    blocked(vec![longer], Blocker::ApprovalVoid, "another request");
}

#[test]
fn a_word_on_another_binding_moved_under_this_one_names_what_was_signed() {
    let other = with(granted(1), |binding| binding.stage = Stage::OwnedRepo);
    let moved = Approval { request: request(1), ..other };
    blocked(vec![moved], Blocker::ApprovalVoid, "the stage changed: approved was 5, now it is 4");
}

#[test]
fn a_signature_that_does_not_count_is_said_with_its_reason() {
    let record = find_usable(&holds(vec![granted(1)]), &Believes(&[]), &binding(), now(), false).unwrap_err();
    says(&record, Blocker::ApprovalVoid, "alice was revoked");
    let foreign =
        Approval { ruling: Some(signed(ruling(&request(1), Answer::Granted), "mallory")), ..granted(1) };
    blocked(vec![foreign], Blocker::ApprovalVoid, "the key is not that of alice");
}

#[test]
fn another_contract_than_the_one_that_was_shown_is_not_approved() {
    for shown in [super::CONTRACT.replace("must trim", "may trim"), "nothing".to_owned()] {
        let mut request = request(1);
        request.contract_text = shown;
        blocked(
            vec![approval(request, ApprovalState::Granted)],
            Blocker::ApprovalVoid,
            "is not the one that it is bound to",
        );
    }
}

#[test]
fn with_separation_two_people_signed() {
    let separate = |approval| find_usable(&holds(vec![approval]), &BOTH, &binding(), now(), true);
    assert!(separate(granted(1)).is_ok());
    let void = |approval, words| says(&separate(approval).unwrap_err(), Blocker::ApprovalVoid, words);

    void(Approval { signed_request: None, ..granted(1) }, "is not signed by who made it");
    void(Approval { signed_request: Some(signed(request(1), "alice")), ..granted(1) }, "not that of bob");
    void(Approval { signed_request: Some(signed(request(2), "bob")), ..granted(1) }, "another request");

    let mut alone = request(1);
    alone.requested_by = "alice".to_owned();
    let mut by_one = approval(alone.clone(), ApprovalState::Granted);
    by_one.signed_request = Some(signed(alone, "alice"));
    assert!(found(vec![by_one.clone()]).is_ok(), "without separation one person is enough");
    void(by_one, "`alice` both asked for");
}

#[test]
fn one_key_under_two_names_is_one_person() {
    struct Anything;
    impl super::SignatureCheck for Anything {
        fn ruling(&self, _: &super::Signed<super::Ruling>) -> Result<(), super::Distrust> {
            Ok(())
        }
        fn request(&self, _: &super::Signed<super::ApprovalRequest>) -> Result<(), super::Distrust> {
            Ok(())
        }
    }
    let same_key = Approval { signed_request: Some(signed(request(1), "alice")), ..granted(1) };
    let record = find_usable(&holds(vec![same_key]), &Anything, &binding(), now(), true).unwrap_err();
    says(&record, Blocker::ApprovalVoid, "both asked for");
}

#[test]
fn the_approval_of_another_contract_is_named_where_it_is_near() {
    let other =
        |state| with(approval(request(1), state), |binding| binding.contract_id = "another".parse().unwrap());
    let words = "there is no approval of this contract; the nearest is approval";
    blocked(vec![other(ApprovalState::Granted)], Blocker::ApprovalVoid, words);
    for approvals in [
        vec![other(ApprovalState::Consumed)],
        vec![with(other(ApprovalState::Granted), |binding| binding.target = "elsewhere".to_owned())],
    ] {
        blocked(approvals, Blocker::ApprovalVoid, "ask with `herma approvals request`");
    }
}

#[test]
fn of_changed_ones_the_granted_one_is_told() {
    let changed = |n, state| with(approval(request(n), state), |binding| binding.base = format!("base-{n}"));
    let approvals = vec![changed(2, ApprovalState::Requested), changed(1, ApprovalState::Granted)];
    blocked(
        approvals,
        Blocker::ApprovalVoid,
        "(granted) is not of this run: the target's base changed: approved was base-1",
    );
}

#[test]
fn a_text_of_others_stays_on_its_line() {
    let mut denied = approval(request(1), ApprovalState::Denied);
    denied.ruling.as_mut().unwrap().record.reason = "no\n\u{1b}[2J\u{202e}".to_owned();
    blocked(vec![denied], Blocker::ApprovalDenied, "no\\n\\u{1b}[2J\\u{202e}");
}

fn blocker_of(result: Consumption) -> BlockerRecord {
    match result {
        Consumption::Blocked(record) => record,
        Consumption::Consumed => panic!("consumed"),
    }
}

#[test]
fn each_end_of_consuming_is_its_own_blocker() {
    let mut used = granted(1);
    used.consumed_by = Some(run(3));
    let fixed = FixedStore::with(vec![used]);
    let store = fixed.open();
    let present = UsableApproval { approval: granted(1) };
    let come = |moved| {
        *fixed.next.lock().unwrap() = Some(Ok(moved));
        consume(&store, &present, run(1), now()).unwrap()
    };
    assert_eq!(come(Moved::Done), Consumption::Consumed);
    assert_eq!(*fixed.consumed.lock().unwrap(), [(request(1).id, run(1))]);
    let stood = |state| blocker_of(come(Moved::Stood(state)));
    says(&stood(ApprovalState::Consumed), Blocker::ApprovalAlreadyConsumed, &run(3).to_string());
    says(&stood(ApprovalState::Expired), Blocker::ApprovalExpired, "was good until");
    says(&stood(ApprovalState::Denied), Blocker::ApprovalDenied, "was denied");
    says(&stood(ApprovalState::Requested), Blocker::ApprovalVoid, "requested");
    says(&stood(ApprovalState::Granted), Blocker::ApprovalVoid, "granted");
    says(&blocker_of(come(Moved::Unknown)), Blocker::ApprovalVoid, "not in the store any more");

    let full = StoreError::new(StoreErrorKind::Unavailable, "commit", "disk");
    *fixed.next.lock().unwrap() = Some(Err(full));
    assert!(consume(&store, &present, run(1), now()).is_err(), "the owner is unknown");
}

#[test]
fn on_the_real_store_the_second_look_and_the_second_use_find_it_used() {
    let dir = tempfile::tempdir().unwrap();
    let store = BlockingStore::open(&StoreLocation::file(dir.path().join("store.db"))).unwrap();
    let (request, grant) = (request(1), granted(1));
    let (signed, ruling) = (grant.signed_request.as_ref(), grant.ruling.as_ref().unwrap());
    store.call(|store| store.request_approval(&request, signed)).unwrap();
    store.call(|store| store.rule_on_approval(ruling, now())).unwrap();
    let look = || find_usable(&store, &BOTH, &binding(), now(), true);
    let present = look().unwrap();
    assert_eq!(present.approval, grant);
    assert_eq!(consume(&store, &present, run(1), now()).unwrap(), Consumption::Consumed);
    let second = blocker_of(consume(&store, &present, run(2), now()).unwrap());
    for record in [look().unwrap_err(), second] {
        says(&record, Blocker::ApprovalAlreadyConsumed, &format!("was used by run {}", run(1)));
    }
}

/// Changes one field of a binding to another value, and returns its name in messages.
fn change(binding: &mut Binding, field: u8, salt: u32) -> &'static str {
    let text = format!("other-{salt}");
    let digest = Digest::of(text.as_bytes());
    match field {
        0 => (binding.contract_digest = digest, "the contract"),
        1 => (binding.engine = text.parse().unwrap(), "the engine"),
        2 => (binding.engine_digest = digest, "the engine's digest"),
        3 => (binding.model = (salt.is_multiple_of(2)).then_some(text), "the model"),
        4 => (binding.target = text, "the target"),
        5 => (binding.base = text, "the target's base"),
        6 => (binding.stage = Stage::OwnedRepo, "the stage"),
        7 => (binding.destination = DestinationKind::Docker, "the destination"),
        8 => (binding.policy_digest = digest, "the policy"),
        9 => (binding.egress_digest = digest, "the egress rules"),
        10 => (binding.target_admission = Some(digest), "the target's admission"),
        11 => (binding.purpose = herma_core::decision::Purpose::Proof, "the purpose"),
        12 => (binding.image = Some(text), "the image"),
        _ => (binding.contract_id = text.parse().unwrap(), "the contract's id"),
    }
    .1
}

proptest! {
    #[test]
    fn any_single_change_after_a_grant_voids_it_and_is_named_alone(field in 0..13_u8, salt: u32) {
        let mut changed = binding();
        let what = change(&mut changed, field, salt);
        let record = find_usable(&holds(vec![granted(1)]), &BOTH, &changed, now(), false).unwrap_err();
        prop_assert_eq!(record.blocker, Blocker::ApprovalVoid);
        prop_assert_eq!(record.detail.matches("changed: approved was").count(), 1, "{}", record.detail);
        let named = format!("is not of this run: {what} changed: approved was ");
        prop_assert!(record.detail.contains(&named), "{}", record.detail);
    }

    #[test]
    fn no_set_of_changes_leaves_a_grant_in_force(fields in proptest::collection::btree_set(0..14_u8, 1..14), salt: u32) {
        let mut changed = binding();
        let whats: Vec<_> = fields.iter().map(|field| change(&mut changed, *field, salt)).collect();
        let record = find_usable(&holds(vec![granted(1)]), &BOTH, &changed, now(), false).unwrap_err();
        prop_assert_eq!(record.blocker, Blocker::ApprovalVoid);
        let is_far = fields.contains(&13) && (fields.contains(&1) || fields.contains(&4));
        for what in whats {
            prop_assert!(is_far || record.detail.contains(&format!("{what} changed: ")), "{}", record.detail);
        }
    }
}
