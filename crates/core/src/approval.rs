//! Approvals: a person's yes to one exact contract, usable once. A request is not an approval.

use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::approver::ApproverName;
use crate::contract::ContractId;
use crate::decision::Purpose;
use crate::digest::Digest;
use crate::engine::{DestinationKind, EngineName};
use crate::id::RunId;
use crate::signed::{Signable, Signed};
use crate::stage::Stage;
use crate::trust_head::TrustHead;

/// An approval's name: a version 7 UUID like a run's, with its own type so that the two are never mixed up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct ApprovalId(RunId);

impl ApprovalId {
    /// A name for an approval that is requested `at` that time; `entropy` makes it unlike any other.
    #[must_use]
    pub fn new(at: Timestamp, entropy: [u8; 10]) -> Self {
        Self(RunId::new(at, entropy))
    }

    /// The last eight digits.
    #[must_use]
    pub fn short(&self) -> String {
        self.0.short()
    }
}

impl fmt::Display for ApprovalId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for ApprovalId {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        text.parse().map(Self).map_err(|_| {
            let shown: String = text.chars().take(80).collect();
            format!("`{shown}` is not the name of an approval: expected a version 7 UUID in lower case")
        })
    }
}

/// Everything that an approval is a yes to. Where any of it is not what it was, the approval is void.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Binding {
    /// The contract's name.
    pub contract_id: ContractId,
    /// The contract's digest.
    pub contract_digest: Digest,
    /// The engine.
    pub engine: EngineName,
    /// The digest of everything that the engine runs.
    pub engine_digest: Digest,
    /// `provider/model`, with fallbacks and auxiliaries where the contract names some; none for a run without a model.
    pub model: Option<String>,
    /// The target by its name, never by its path.
    pub target: String,
    /// The digest of the record that says where the target is and what may change there; none for a fixture.
    pub target_admission: Option<Digest>,
    /// The commit of the target that the run starts from, or for a fixture the digest of its files.
    pub base: String,
    /// The purpose of the run: the approval of a proof's case is valid for no other work.
    pub purpose: Purpose,
    /// The stage.
    pub stage: Stage,
    /// Where the engine runs.
    pub destination: DestinationKind,
    /// The image that its containers are made of, by digest, and the runtime that was chosen for them; none where it runs
    /// in no container.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// Digest over the rules that no contract can change.
    pub policy_digest: Digest,
    /// Digest over the hosts that the contract lets the engine reach.
    pub egress_digest: Digest,
}

/// One thing that is not what was approved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The field that differs.
    pub what: &'static str,
    /// The approved value.
    pub approved: String,
    /// The value now.
    pub now: String,
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} changed: approved was {}, now it is {}", self.what, self.approved, self.now)
    }
}

impl Binding {
    /// The fields in which `now` differs from what was approved, in their order.
    #[must_use]
    pub fn changes(&self, now: &Self) -> Vec<Change> {
        // Taken apart so that a new field cannot be forgotten here.
        let Self {
            contract_id,
            contract_digest,
            engine,
            engine_digest,
            model,
            target,
            target_admission,
            base,
            purpose,
            stage,
            destination,
            image,
            policy_digest,
            egress_digest,
        } = self;
        let or_none = |text: &Option<String>| text.clone().unwrap_or_else(|| "none".to_owned());
        let admission = |digest: &Option<Digest>| digest.map_or_else(|| "none".to_owned(), |d| d.to_string());
        [
            ("the contract's id", contract_id.to_string(), now.contract_id.to_string()),
            ("the contract", contract_digest.to_string(), now.contract_digest.to_string()),
            ("the engine", engine.to_string(), now.engine.to_string()),
            ("the engine's digest", engine_digest.to_string(), now.engine_digest.to_string()),
            ("the model", or_none(model), or_none(&now.model)),
            ("the target", target.clone(), now.target.clone()),
            ("the target's admission", admission(target_admission), admission(&now.target_admission)),
            ("the target's base", base.clone(), now.base.clone()),
            ("the purpose", purpose.as_str().to_owned(), now.purpose.as_str().to_owned()),
            ("the stage", stage.to_string(), now.stage.to_string()),
            ("the destination", destination.as_str().to_owned(), now.destination.as_str().to_owned()),
            ("the image", or_none(image), or_none(&now.image)),
            ("the policy", policy_digest.to_string(), now.policy_digest.to_string()),
            ("the egress rules", egress_digest.to_string(), now.egress_digest.to_string()),
        ]
        .into_iter()
        .filter(|(_, approved, now)| approved != now)
        .map(|(what, approved, now)| Change { what, approved, now })
        .collect()
    }
}

/// Somebody asks for an approval.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ApprovalRequest {
    /// The approval's name.
    pub id: ApprovalId,
    /// The run that the approval is for.
    pub binding: Binding,
    /// The contract as it was written, so that who rules on it sees what they rule on, and signs it.
    pub contract_text: String,
    /// The requester: a name that an approver's key signed for, or the user that herma runs as.
    pub requested_by: String,
    /// Why.
    pub reason: String,
    /// When.
    pub requested_at: Timestamp,
    /// Until when it can be granted, and a grant be used.
    pub expires_at: Timestamp,
}

impl Signable for ApprovalRequest {
    const KIND: &'static str = "herma.approval-request/v1";
}

/// A person's word on a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Ruling {
    /// Which request.
    pub id: ApprovalId,
    /// Yes or no.
    pub answer: Answer,
    /// The whole request: a signature over a name alone would be one over whatever the store says it means.
    pub request: ApprovalRequest,
    /// The approver who ruled.
    pub approver: ApproverName,
    /// Why.
    pub reason: String,
    /// When.
    pub at: Timestamp,
    /// The head of the trust chain that the signer saw; none in records of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trust_head: Option<TrustHead>,
}

impl Signable for Ruling {
    const KIND: &'static str = "herma.approval-ruling/v1";
}

/// Yes or no.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// Yes, once.
    Granted,
    /// No; that is final.
    Denied,
}

/// The state of an approval. Denied, expired and consumed are final.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalState {
    /// Nobody has answered yet.
    Requested,
    /// A person said yes, and no run has used it.
    Granted,
    /// A person said no.
    Denied,
    /// Its time is over.
    Expired,
    /// A run has used it.
    Consumed,
}

impl ApprovalState {
    /// The name as it is written in files and on the screen.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Requested => "requested",
            Self::Granted => "granted",
            Self::Denied => "denied",
            Self::Expired => "expired",
            Self::Consumed => "consumed",
        }
    }
}

/// An approval as the store holds it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Approval {
    /// The request.
    pub request: ApprovalRequest,
    /// The requester's signature, where separation of duties asks for one.
    pub signed_request: Option<Signed<ApprovalRequest>>,
    /// Its state.
    pub state: ApprovalState,
    /// The person's word, signed; none before it was given.
    pub ruling: Option<Signed<Ruling>>,
    /// The run that used it.
    pub consumed_by: Option<RunId>,
}

impl Approval {
    /// Its state at that time: an approval that was not used in time is expired, whatever the store says.
    #[must_use]
    pub fn state_at(&self, now: Timestamp) -> ApprovalState {
        match self.state {
            ApprovalState::Requested | ApprovalState::Granted if now >= self.request.expires_at => {
                ApprovalState::Expired
            }
            state => state,
        }
    }
}

/// The result of moving an approval to another state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moved {
    /// It is there now.
    Done,
    /// It could not be moved, because it was in this state.
    Stood(ApprovalState),
    /// There is no such approval.
    Unknown,
}
