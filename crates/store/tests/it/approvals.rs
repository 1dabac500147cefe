//! Every move of an approval, and every one that must not be made.

use herma_core::approval::{Answer, Approval, ApprovalState, ApprovalStore, Moved};
use herma_core::{RunId, Timestamp};
use tempfile::TempDir;

use crate::sample::{at, open, request, requested, ruling, run, signed};

struct World {
    dir: TempDir,
    store: Box<dyn ApprovalStore>,
}

/// A store with request number 1 in it.
fn world() -> World {
    let dir = TempDir::new().unwrap();
    let store = open(dir.path());
    store.request(&request(1), None).unwrap();
    World { dir, store }
}

impl World {
    fn rule(&self, answer: Answer, now: Timestamp) -> Moved {
        self.store.rule(&ruling(&request(1), answer), now).unwrap()
    }

    fn consume(&self, run: RunId, now: Timestamp) -> Moved {
        self.store.consume(request(1).id, run, now).unwrap()
    }

    /// What the store says, asked by another process that opens it anew.
    fn stands(&self) -> Approval {
        let mut found = open(self.dir.path()).find_approval(&request(1).id.to_string()).unwrap();
        assert_eq!(found.len(), 1);
        found.remove(0)
    }

    fn state(&self) -> ApprovalState {
        self.stands().state
    }
}

#[test]
fn an_approval_reads_back_as_it_was_written_in_every_state() {
    let world = world();
    assert_eq!(world.stands(), requested(request(1)));

    assert_eq!(world.rule(Answer::Granted, at(10)), Moved::Done);
    let granted = Approval {
        state: ApprovalState::Granted,
        ruling: Some(ruling(&request(1), Answer::Granted)),
        ..requested(request(1))
    };
    assert_eq!(world.stands(), granted);

    assert_eq!(world.consume(run(1), at(20)), Moved::Done);
    let consumed = Approval { state: ApprovalState::Consumed, consumed_by: Some(run(1)), ..granted };
    assert_eq!(world.stands(), consumed);
}

#[test]
fn the_requesters_signature_is_kept() {
    let world = world();
    let signed = signed(request(2));
    world.store.request(&request(2), Some(&signed)).unwrap();
    let found = world.store.find_approval(&request(2).id.to_string()).unwrap();
    assert_eq!(found, [Approval { signed_request: Some(signed), ..requested(request(2)) }]);
}

#[test]
fn a_request_is_not_an_approval() {
    let world = world();
    assert_eq!(world.consume(run(1), at(10)), Moved::Stood(ApprovalState::Requested));
    assert_eq!(world.state(), ApprovalState::Requested);
}

#[test]
fn an_approval_is_consumed_once_also_by_the_run_that_has_it() {
    let world = world();
    world.rule(Answer::Granted, at(10));
    assert_eq!(world.consume(run(1), at(20)), Moved::Done);
    for other in [run(2), run(1)] {
        assert_eq!(world.consume(other, at(21)), Moved::Stood(ApprovalState::Consumed));
    }
    assert_eq!(world.stands().consumed_by, Some(run(1)));
}

#[test]
fn denied_and_consumed_and_granted_cannot_be_ruled_on_again() {
    let denied = world();
    assert_eq!(denied.rule(Answer::Denied, at(10)), Moved::Done);
    assert_eq!(denied.rule(Answer::Granted, at(11)), Moved::Stood(ApprovalState::Denied));
    assert_eq!(denied.consume(run(1), at(12)), Moved::Stood(ApprovalState::Denied));
    assert_eq!(denied.stands().ruling, Some(ruling(&request(1), Answer::Denied)));

    let granted = world();
    assert_eq!(granted.rule(Answer::Granted, at(10)), Moved::Done);
    assert_eq!(granted.rule(Answer::Denied, at(11)), Moved::Stood(ApprovalState::Granted));
    assert_eq!(granted.consume(run(1), at(12)), Moved::Done);
    assert_eq!(granted.rule(Answer::Denied, at(13)), Moved::Stood(ApprovalState::Consumed));
}

#[test]
fn an_approval_is_over_at_its_very_time_and_not_before() {
    let last = at(1_000).checked_sub(std::time::Duration::from_nanos(1)).unwrap();

    let in_time = world();
    assert_eq!(in_time.rule(Answer::Granted, last), Moved::Done);
    assert_eq!(in_time.consume(run(1), last), Moved::Done);

    let ruled_late = world();
    assert_eq!(ruled_late.rule(Answer::Granted, at(1_000)), Moved::Stood(ApprovalState::Expired));
    assert_eq!(ruled_late.stands().ruling, None);

    let used_late = world();
    assert_eq!(used_late.rule(Answer::Granted, last), Moved::Done);
    assert_eq!(used_late.consume(run(1), at(1_000)), Moved::Stood(ApprovalState::Expired));
    assert_eq!(used_late.stands().consumed_by, None);
}

#[test]
fn what_was_seen_to_be_over_stays_over_when_the_clock_is_set_back() {
    let world = world();
    world.rule(Answer::Granted, at(10));
    world.consume(run(1), at(2_000));
    assert_eq!(world.state(), ApprovalState::Expired, "it is written down");
    assert_eq!(world.consume(run(1), at(20)), Moved::Stood(ApprovalState::Expired));
    assert_eq!(world.rule(Answer::Granted, at(20)), Moved::Stood(ApprovalState::Expired));
}

#[test]
fn expiring_takes_all_that_is_over_and_nothing_that_ended_otherwise() {
    let world = world();
    let mut longer = request(2);
    longer.expires_at = at(5_000);
    world.store.request(&longer, None).unwrap();
    world.store.request(&request(3), None).unwrap();
    world.store.rule(&ruling(&request(3), Answer::Denied), at(10)).unwrap();
    world.store.expire(at(999)).unwrap();
    let states = || -> Vec<_> {
        world.store.approvals(None, 10).unwrap().iter().map(|approval| approval.state).collect()
    };
    let (requested, denied) = (ApprovalState::Requested, ApprovalState::Denied);
    assert_eq!(states(), [denied, requested, requested]);
    world.store.expire(at(1_000)).unwrap();
    assert_eq!(states(), [denied, requested, ApprovalState::Expired]);
}

#[test]
fn times_are_compared_as_times_not_as_text() {
    // As text, the shorter `…:00Z` sorts after the later `…:00.5Z`, and a year of five digits before one of four.
    let half_past = at(10).checked_add(std::time::Duration::from_millis(500)).unwrap();
    let world = world();
    let mut request = request(2);
    request.expires_at = half_past;
    world.store.request(&request, None).unwrap();
    assert_eq!(world.store.rule(&ruling(&request, Answer::Granted), at(10)).unwrap(), Moved::Done);
    assert_eq!(
        world.store.consume(request.id, run(1), at(11)).unwrap(),
        Moved::Stood(ApprovalState::Expired)
    );
}

#[test]
fn a_time_that_is_too_far_for_a_number_is_far_away() {
    let world = world();
    let mut request = request(2);
    request.expires_at = Timestamp::MAX;
    world.store.request(&request, None).unwrap();
    assert_eq!(world.store.rule(&ruling(&request, Answer::Granted), at(10)).unwrap(), Moved::Done);
    assert_eq!(world.store.find_approval(&request.id.to_string()).unwrap()[0].request, request);
}

#[test]
fn a_word_on_another_request_is_not_taken() {
    let world = world();
    let mut other = request(1);
    other.binding.contract_id = "another".parse().unwrap();
    let error = world.store.rule(&ruling(&other, Answer::Granted), at(10)).unwrap_err();
    assert!(error.to_string().contains("another request"), "{error}");
    assert_eq!(world.stands(), requested(request(1)));
}

#[test]
fn a_name_is_given_once() {
    let world = world();
    let mut other = request(1);
    other.reason = "another".to_owned();
    assert!(world.store.request(&other, None).is_err());
    assert_eq!(world.stands(), requested(request(1)));
}

#[test]
fn an_unknown_name_is_said_to_be_unknown() {
    let world = world();
    assert_eq!(world.store.consume(request(2).id, run(1), at(10)).unwrap(), Moved::Unknown);
    assert_eq!(world.store.rule(&ruling(&request(2), Answer::Granted), at(10)).unwrap(), Moved::Unknown);
}

#[test]
fn approvals_are_listed_as_recorded_by_contract_and_found_by_either_end() {
    let world = world();
    let mut other = request(2);
    other.binding.contract_id = "another".parse().unwrap();
    for request in [&request(3), &other] {
        world.store.request(request, None).unwrap();
    }
    let ids = |approvals: Vec<Approval>| -> Vec<_> { approvals.iter().map(|a| a.request.id).collect() };
    let contract = request(1).binding.contract_id;
    let (first, second, third) = (request(1).id, other.id, request(3).id);
    // The second was recorded last, with a clock that was behind.
    assert_eq!(ids(world.store.approvals(None, 10).unwrap()), [second, third, first]);
    assert_eq!(ids(world.store.approvals(None, 2).unwrap()), [second, third]);
    assert_eq!(ids(world.store.approvals(Some(&contract), 10).unwrap()), [third, first]);
    assert_eq!(ids(world.store.approvals(Some(&contract), 1).unwrap()), [third]);
    assert_eq!(ids(world.store.find_approval(&second.short()).unwrap()), [second]);
    assert_eq!(world.store.find_approval("01").unwrap().len(), 2, "ambiguous");
    assert!(world.store.find_approval("%").unwrap().is_empty(), "no wildcards");
}
