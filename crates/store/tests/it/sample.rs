//! Approvals to work with.

use std::path::Path;

use herma_core::approval::{
    Answer, Approval, ApprovalId, ApprovalRequest, ApprovalState, ApprovalStore, Binding, Ruling,
};
use herma_core::engine::{DestinationKind, EngineName};
use herma_core::signed::Signed;
use herma_core::{Digest, RunId, Stage, Timestamp};
use herma_store::SqliteStore;

/// The time of day in these tests, in seconds.
pub(crate) fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + second).unwrap()
}

/// A store in this directory; in tests it is known only by its trait.
pub(crate) fn open(dir: &Path) -> Box<dyn ApprovalStore> {
    Box::new(SqliteStore::open(&dir.join("store.db")).unwrap())
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

/// A person's word on a request.
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

/// The approval that a request is before anybody answered.
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
