//! The operator's word after a verdict. A pass is not an acceptance.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::approver::ApproverName;
use crate::digest::Digest;
use crate::id::RunId;
use crate::signed::Signable;
use crate::trust_head::TrustHead;

/// The operator's word, as `outcome.json` holds it, signed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Outcome {
    /// `herma.outcome/v1`.
    pub schema: OutcomeSchema,
    /// Which run.
    pub run_id: RunId,
    /// The digest of the bundle's `attestation.json`: the word is on this evidence and no other.
    pub attestation: Digest,
    /// Accepted or rejected.
    pub outcome: OutcomeWord,
    /// Why.
    pub reason: String,
    /// The operator.
    pub operator: ApproverName,
    /// When.
    pub decided_at: Timestamp,
    /// The head of the trust chain that the signer saw; none in records of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trust_head: Option<TrustHead>,
}

impl Signable for Outcome {
    const KIND: &'static str = "herma.outcome/v1";
}

/// The version of the outcome's format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum OutcomeSchema {
    /// The first version.
    #[serde(rename = "herma.outcome/v1")]
    V1,
}

/// The decision of an operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OutcomeWord {
    /// The result is taken.
    Accepted,
    /// The result is not accepted; a landing is undone.
    Rejected,
}
