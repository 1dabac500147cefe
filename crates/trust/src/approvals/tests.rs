//! Approvals on a store with fixed content, and signatures that count for fixed names.

mod fixed_store;
mod packets;
mod usable;

use herma_core::approval::{Answer, Approval, ApprovalId, ApprovalRequest, ApprovalState, Binding, Ruling};
use herma_core::engine::{DestinationKind, EngineName};
use herma_core::signed::Signed;
use herma_core::{Contract, Digest, RunId, Timestamp};

use super::signatures::SignatureCheck;
use super::{BindingInput, bind};
use crate::approvers::Distrust;

const CONTRACT: &str = "---\nid: trim-slug\ntitle: slugify keeps outer whitespace\ntarget: { fixture: string-slugify }\n\
    stage: 4\nallowed_paths: [strings.py, \"tests/**\"]\nforbidden_paths: [\"docs/legal/**\"]\nlift_paths: [Cargo.lock]\n\
    forbidden_actions: [tag]\nverify: [python3 -m pytest -q]\nrisk: low\nauthority: somebody\n\
    model: { provider: somebody, model: some-model, fallback: [other-model], auxiliary: [small-model] }\n---\n\
    slugify must trim.\nAnd collapse.\n";

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + second).unwrap()
}

fn now() -> Timestamp {
    at(100)
}

fn binding() -> Binding {
    let contract = Contract::parse(CONTRACT.as_bytes()).unwrap();
    bind(&BindingInput {
        contract: &contract,
        contract_digest: contract.digest().unwrap(),
        engine: &EngineName::fake(),
        engine_digest: Digest::of(b"engine"),
        target: "string-slugify".to_owned(),
        target_admission: Some(Digest::of(b"admission")),
        base: Digest::of(b"base").to_string(),
        purpose: herma_core::decision::Purpose::Work,
        destination: DestinationKind::Sandbox,
        image: None,
        governance_digest: Digest::of(b"governance"),
        egress_digest: herma_rules::egress_digest(&contract.terms, &herma_rules::EgressRules::default()),
    })
}

/// Request number `n` of bob, made at second `n`, which can be used until second 1,000.
fn request(n: u8) -> ApprovalRequest {
    ApprovalRequest {
        id: ApprovalId::new(at(n.into()), [n; 10]),
        binding: binding(),
        contract_text: CONTRACT.to_owned(),
        requested_by: "bob".to_owned(),
        reason: "it is due".to_owned(),
        requested_at: at(n.into()),
        expires_at: at(1_000),
    }
}

/// The record as that approver would sign it; the key id is derived from the name.
fn signed<T>(record: T, by: &str) -> Signed<T> {
    Signed { record, key_id: Digest::of(by.as_bytes()), signature: String::new() }
}

fn ruling(request: &ApprovalRequest, answer: Answer) -> Ruling {
    Ruling {
        trust_head: None,
        id: request.id,
        answer,
        request: request.clone(),
        approver: "alice".parse().unwrap(),
        reason: "looks right".to_owned(),
        at: at(50),
    }
}

/// The approval of a request in a state that it reached regularly.
fn approval(request: ApprovalRequest, state: ApprovalState) -> Approval {
    let answer = match state {
        ApprovalState::Requested | ApprovalState::Expired => None,
        ApprovalState::Granted | ApprovalState::Consumed => Some(Answer::Granted),
        ApprovalState::Denied => Some(Answer::Denied),
    };
    Approval {
        ruling: answer.map(|answer| signed(ruling(&request, answer), "alice")),
        signed_request: Some(signed(request.clone(), "bob")),
        state,
        consumed_by: (state == ApprovalState::Consumed).then(|| run(7)),
        request,
    }
}

fn granted(n: u8) -> Approval {
    approval(request(n), ApprovalState::Granted)
}

fn run(n: u8) -> RunId {
    RunId::new(at(0), [n; 10])
}

/// Believes the keys of those that it lists.
struct Believes(&'static [&'static str]);

impl Believes {
    fn check<T>(&self, signed: &Signed<T>, by: &str) -> Result<(), Distrust> {
        if !self.0.contains(&by) {
            return Err(Distrust::BadName(format!("{by} was revoked")));
        }
        (signed.key_id == Digest::of(by.as_bytes()))
            .then_some(())
            .ok_or_else(|| Distrust::BadName(format!("the key is not that of {by}")))
    }
}

impl SignatureCheck for Believes {
    fn ruling(&self, signed: &Signed<Ruling>) -> Result<(), Distrust> {
        self.check(signed, signed.record.approver.as_str())
    }

    fn request(&self, signed: &Signed<ApprovalRequest>) -> Result<(), Distrust> {
        self.check(signed, &signed.record.requested_by)
    }
}
