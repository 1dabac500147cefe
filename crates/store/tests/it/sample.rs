//! Runs, events and approvals to work with.

use herma_core::approval::{Answer, Approval, ApprovalId, ApprovalRequest, ApprovalState, Binding, Ruling};
use herma_core::engine::{DestinationKind, EngineName};
use herma_core::event::Source;
use herma_core::signed::Signed;
use herma_core::store::{EventRow, RunSummary};
use herma_core::{Digest, Event, EventType, Report, RunId, Stage, Timestamp};
use serde_json::json;

/// The time of day in these tests, in seconds.
pub(crate) fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + second).unwrap()
}

/// Request number `n`, made at second `n`, which can be used until second 1,000.
pub(crate) fn request(n: u32) -> ApprovalRequest {
    ApprovalRequest {
        id: ApprovalId::new(at(n.into()), entropy(n)),
        binding: Binding {
            contract_id: "trim-slug".parse().unwrap(),
            contract_digest: Digest::of(b"contract"),
            engine: EngineName::fake(),
            engine_digest: Digest::of(b"engine"),
            model: Some("somebody/some-model".to_owned()),
            target: "string-slugify".to_owned(),
            target_admission: None,
            base: Digest::of(b"base").to_string(),
            purpose: herma_core::decision::Purpose::Work,
            stage: Stage::DisposableRepo,
            destination: DestinationKind::Sandbox,
            policy_digest: Digest::of(b"policy"),
            image: None,
            egress_digest: Digest::of(b"egress"),
        },
        contract_text: "---\nid: trim-slug\n---\nTrim it.\n".to_owned(),
        requested_by: "bob".to_owned(),
        reason: "because \"it\" \u{202e} matters\n".to_owned(),
        requested_at: at(n.into()),
        expires_at: at(1_000),
    }
}

/// A record with something that looks like a signature: the store does not judge it.
pub(crate) fn signed<T>(record: T) -> Signed<T> {
    Signed { record, key_id: Digest::of(b"key"), signature: "c2lnbmF0dXJl".to_owned() }
}

/// An approver's ruling on a request.
pub(crate) fn ruling(request: &ApprovalRequest, answer: Answer) -> Signed<Ruling> {
    signed(Ruling {
        trust_head: None,
        id: request.id,
        answer,
        request: request.clone(),
        approver: "alice".parse().unwrap(),
        reason: "looks right".to_owned(),
        at: at(10),
    })
}

/// The approval of a request without a ruling.
pub(crate) fn requested(request: ApprovalRequest) -> Approval {
    Approval {
        request,
        signed_request: None,
        state: ApprovalState::Requested,
        ruling: None,
        consumed_by: None,
    }
}

/// Run number `n`.
pub(crate) fn run(n: u32) -> RunId {
    RunId::new(at(0), entropy(n))
}

fn entropy(n: u32) -> [u8; 10] {
    let mut entropy = [0; 10];
    // The last bytes, which the short name shows.
    entropy[6..].copy_from_slice(&n.to_be_bytes());
    entropy
}

/// Run number `n`, before its end.
pub(crate) fn summary(n: u32) -> RunSummary {
    RunSummary {
        run_id: run(n),
        contract_id: "trim-slug".parse().unwrap(),
        contract_digest: Digest::of(b"contract"),
        engine: EngineName::fake(),
        destination: DestinationKind::Sandbox,
        stage: Stage::Fixture,
        started_at: at(n.into()),
        finished_at: None,
        status: None,
        blockers: Vec::new(),
    }
}

/// The report of run number `n`.
pub(crate) fn report(n: u32) -> Report {
    let report: Report = serde_json::from_str(include_str!("report.json")).unwrap();
    let RunSummary { run_id, contract_id, contract_digest, engine, destination, stage, started_at, .. } =
        summary(n);
    Report {
        run_id,
        contract_id,
        contract_digest,
        engine,
        destination,
        stage,
        run_started_at: started_at,
        run_finished_at: started_at,
        ..report
    }
}

/// The events 0 to `count - 1` of a run, chained as in a bundle.
pub(crate) fn events(run_id: RunId, count: u64) -> Vec<Event> {
    let mut prev = Digest::of(b"");
    let event = |seq| {
        let data = json!({ "text": format!("message \"{seq}\"\n") }).as_object().unwrap().clone();
        let kind = if seq == 0 { EventType::RunStarted } else { EventType::EngineMessage };
        let event = Event { seq, ts: at(0), run_id, source: Source::Harness, kind, data, prev };
        prev = Digest::of(EventRow::of(&event).unwrap().line.as_bytes());
        event
    };
    (0..count).map(event).collect()
}

pub(crate) fn rows(events: &[Event]) -> Vec<EventRow> {
    events.iter().map(|event| EventRow::of(event).unwrap()).collect()
}
