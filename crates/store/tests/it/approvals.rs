//! Every change of an approval's state, and every one that must not be made.

use herma_core::approval::{Answer, Approval, ApprovalRequest, ApprovalState, Moved};
use herma_core::contract::ContractId;
use herma_core::store::{StoreError, StoreErrorKind};
use herma_core::{RunId, Timestamp};
use herma_store::BlockingStore;

use crate::backend::{Backend, on_every_engine};
use crate::sample::{at, request, requested, ruling, run, signed};

struct World {
    backend: Backend,
    store: BlockingStore,
}

impl World {
    /// A store with request number 1 in it.
    fn new(backend: Backend) -> Self {
        let world = Self { store: backend.open_blocking(), backend };
        world.request(&request(1)).unwrap();
        world
    }

    fn request(&self, request: &ApprovalRequest) -> Result<(), StoreError> {
        self.store.call(|store| store.request_approval(request, None))
    }

    fn rule_on(
        &self,
        request: &ApprovalRequest,
        answer: Answer,
        now: Timestamp,
    ) -> Result<Moved, StoreError> {
        let ruling = ruling(request, answer);
        self.store.call(|store| store.rule_on_approval(&ruling, now))
    }

    fn rule(&self, answer: Answer, now: Timestamp) -> Moved {
        self.rule_on(&request(1), answer, now).unwrap()
    }

    fn consume_of(&self, request: &ApprovalRequest, run: RunId, now: Timestamp) -> Moved {
        self.store.call(|store| store.consume_approval(request.id, run, now)).unwrap()
    }

    fn consume(&self, run: RunId, now: Timestamp) -> Moved {
        self.consume_of(&request(1), run, now)
    }

    fn expire(&self, now: Timestamp) {
        self.store.call(|store| store.expire_approvals(now)).unwrap();
    }

    fn list(&self, contract: Option<&ContractId>, limit: u32) -> Vec<Approval> {
        self.store.call(|store| store.approvals(contract, limit)).unwrap()
    }

    fn find(&self, part: &str) -> Vec<Approval> {
        self.store.call(|store| store.find_approvals(part)).unwrap()
    }

    /// The approval as another process reads it.
    fn stored(&self) -> Approval {
        let id = request(1).id.to_string();
        let mut found = self.backend.open_blocking().call(|store| store.find_approvals(&id)).unwrap();
        assert_eq!(found.len(), 1);
        found.remove(0)
    }

    fn state(&self) -> ApprovalState {
        self.stored().state
    }
}

#[test]
fn an_approval_reads_back_as_it_was_written_in_every_state() {
    on_every_engine(|new| {
        let world = World::new(new());
        assert_eq!(world.stored(), requested(request(1)));

        assert_eq!(world.rule(Answer::Granted, at(10)), Moved::Done);
        let granted = Approval {
            state: ApprovalState::Granted,
            ruling: Some(ruling(&request(1), Answer::Granted)),
            ..requested(request(1))
        };
        assert_eq!(world.stored(), granted);

        assert_eq!(world.consume(run(1), at(20)), Moved::Done);
        let consumed = Approval { state: ApprovalState::Consumed, consumed_by: Some(run(1)), ..granted };
        assert_eq!(world.stored(), consumed);
    });
}

#[test]
fn the_requesters_signature_is_kept() {
    on_every_engine(|new| {
        let world = World::new(new());
        let second = request(2);
        let signed = signed(second.clone());
        world.store.call(|store| store.request_approval(&second, Some(&signed))).unwrap();
        let found = world.find(&second.id.to_string());
        assert_eq!(found, [Approval { signed_request: Some(signed), ..requested(request(2)) }]);
    });
}

#[test]
fn a_request_is_not_an_approval() {
    on_every_engine(|new| {
        let world = World::new(new());
        assert_eq!(world.consume(run(1), at(10)), Moved::Stood(ApprovalState::Requested));
        assert_eq!(world.state(), ApprovalState::Requested);
    });
}

#[test]
fn an_approval_is_consumed_once_also_by_the_run_that_has_it() {
    on_every_engine(|new| {
        let world = World::new(new());
        world.rule(Answer::Granted, at(10));
        assert_eq!(world.consume(run(1), at(20)), Moved::Done);
        for other in [run(2), run(1)] {
            assert_eq!(world.consume(other, at(21)), Moved::Stood(ApprovalState::Consumed));
        }
        assert_eq!(world.stored().consumed_by, Some(run(1)));
    });
}

#[test]
fn denied_and_consumed_and_granted_cannot_be_ruled_on_again() {
    on_every_engine(|new| {
        let denied = World::new(new());
        assert_eq!(denied.rule(Answer::Denied, at(10)), Moved::Done);
        assert_eq!(denied.rule(Answer::Granted, at(11)), Moved::Stood(ApprovalState::Denied));
        assert_eq!(denied.consume(run(1), at(12)), Moved::Stood(ApprovalState::Denied));
        assert_eq!(denied.stored().ruling, Some(ruling(&request(1), Answer::Denied)));

        let granted = World::new(new());
        assert_eq!(granted.rule(Answer::Granted, at(10)), Moved::Done);
        assert_eq!(granted.rule(Answer::Denied, at(11)), Moved::Stood(ApprovalState::Granted));
        assert_eq!(granted.consume(run(1), at(12)), Moved::Done);
        assert_eq!(granted.rule(Answer::Denied, at(13)), Moved::Stood(ApprovalState::Consumed));
    });
}

#[test]
fn an_approval_expires_at_its_very_time_and_not_before() {
    on_every_engine(|new| {
        let last = at(1_000).checked_sub(std::time::Duration::from_nanos(1)).unwrap();

        let in_time = World::new(new());
        assert_eq!(in_time.rule(Answer::Granted, last), Moved::Done);
        assert_eq!(in_time.consume(run(1), last), Moved::Done);

        let ruled_late = World::new(new());
        assert_eq!(ruled_late.rule(Answer::Granted, at(1_000)), Moved::Stood(ApprovalState::Expired));
        assert_eq!(ruled_late.stored().ruling, None);

        let used_late = World::new(new());
        assert_eq!(used_late.rule(Answer::Granted, last), Moved::Done);
        assert_eq!(used_late.consume(run(1), at(1_000)), Moved::Stood(ApprovalState::Expired));
        assert_eq!(used_late.stored().consumed_by, None);
    });
}

#[test]
fn an_expired_approval_stays_expired_when_the_clock_is_set_back() {
    on_every_engine(|new| {
        let world = World::new(new());
        world.rule(Answer::Granted, at(10));
        world.consume(run(1), at(2_000));
        assert_eq!(world.state(), ApprovalState::Expired, "the store has it");
        assert_eq!(world.consume(run(1), at(20)), Moved::Stood(ApprovalState::Expired));
        assert_eq!(world.rule(Answer::Granted, at(20)), Moved::Stood(ApprovalState::Expired));
    });
}

#[test]
fn expiring_covers_all_that_are_due_and_no_final_state() {
    on_every_engine(|new| {
        let world = World::new(new());
        let mut longer = request(2);
        longer.expires_at = at(5_000);
        world.request(&longer).unwrap();
        world.request(&request(3)).unwrap();
        world.rule_on(&request(3), Answer::Denied, at(10)).unwrap();
        world.expire(at(999));
        let states = || -> Vec<_> { world.list(None, 10).iter().map(|approval| approval.state).collect() };
        let (requested, denied) = (ApprovalState::Requested, ApprovalState::Denied);
        assert_eq!(states(), [denied, requested, requested]);
        world.expire(at(1_000));
        assert_eq!(states(), [denied, requested, ApprovalState::Expired]);
    });
}

#[test]
fn times_are_compared_as_times_not_as_text() {
    on_every_engine(|new| {
        // As text, the shorter `…:00Z` sorts after the later `…:00.5Z`, and a year of five digits before one of four.
        let half_past = at(10).checked_add(std::time::Duration::from_millis(500)).unwrap();
        let world = World::new(new());
        let mut request = request(2);
        request.expires_at = half_past;
        world.request(&request).unwrap();
        assert_eq!(world.rule_on(&request, Answer::Granted, at(10)).unwrap(), Moved::Done);
        assert_eq!(world.consume_of(&request, run(1), at(11)), Moved::Stood(ApprovalState::Expired));
    });
}

#[test]
fn a_time_beyond_the_range_of_a_column_is_far_away() {
    on_every_engine(|new| {
        let world = World::new(new());
        let mut request = request(2);
        request.expires_at = Timestamp::MAX;
        world.request(&request).unwrap();
        assert_eq!(world.rule_on(&request, Answer::Granted, at(10)).unwrap(), Moved::Done);
        assert_eq!(world.find(&request.id.to_string())[0].request, request);
    });
}

#[test]
fn a_ruling_on_another_request_is_refused() {
    on_every_engine(|new| {
        let world = World::new(new());
        let mut other = request(1);
        other.binding.contract_id = "another".parse().unwrap();
        let error = world.rule_on(&other, Answer::Granted, at(10)).unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Conflict, "{error}");
        assert!(error.to_string().contains("another request"), "{error}");
        assert_eq!(world.stored(), requested(request(1)));
    });
}

#[test]
fn an_id_is_used_once() {
    on_every_engine(|new| {
        let world = World::new(new());
        let mut other = request(1);
        other.reason = "another".to_owned();
        let error = world.request(&other).unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Conflict, "{error}");
        assert_eq!(world.stored(), requested(request(1)));
    });
}

#[test]
fn an_unknown_id_is_reported_as_unknown() {
    on_every_engine(|new| {
        let world = World::new(new());
        assert_eq!(world.consume_of(&request(2), run(1), at(10)), Moved::Unknown);
        assert_eq!(world.rule_on(&request(2), Answer::Granted, at(10)).unwrap(), Moved::Unknown);
    });
}

#[test]
fn approvals_are_listed_as_recorded_by_contract_and_found_by_either_end() {
    on_every_engine(|new| {
        let world = World::new(new());
        let mut other = request(2);
        other.binding.contract_id = "another".parse().unwrap();
        for request in [&request(3), &other] {
            world.request(request).unwrap();
        }
        let ids = |approvals: Vec<Approval>| -> Vec<_> { approvals.iter().map(|a| a.request.id).collect() };
        let contract = request(1).binding.contract_id;
        let (first, second, third) = (request(1).id, other.id, request(3).id);
        // The second was recorded last, with a clock that was behind.
        assert_eq!(ids(world.list(None, 10)), [second, third, first]);
        assert_eq!(ids(world.list(None, 2)), [second, third]);
        assert_eq!(ids(world.list(Some(&contract), 10)), [third, first]);
        assert_eq!(ids(world.list(Some(&contract), 1)), [third]);
        assert_eq!(ids(world.find(&second.short())), [second]);
        assert_eq!(world.find("01").len(), 2, "ambiguous");
        assert!(world.find("%").is_empty(), "no wildcards");
    });
}
