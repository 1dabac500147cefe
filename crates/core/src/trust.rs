//! The trust chain: every record that gives or takes away trust in an installation, in order. Each record names the
//! digest of the record before it, so that none can be removed, changed or moved without a trace.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::admission::AdmissionKind;
use crate::approval::{Answer, ApprovalId};
use crate::approver::{ApproverName, Revocation};
use crate::digest::Digest;
use crate::id::RunId;
use crate::outcome::OutcomeWord;
use crate::signed::Signable;
pub use crate::trust_head::TrustHead;

/// One record of the trust chain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TrustRecord {
    /// Its place in the chain, from 1.
    pub sequence: u64,
    /// The digest of the line before it; the digest of nothing for the first record.
    pub previous: Digest,
    /// When it was appended, by the clock of the machine that appended it.
    pub at: Timestamp,
    /// The change.
    pub entry: TrustEntry,
}

impl Signable for TrustRecord {
    const KIND: &'static str = "herma.trust-record/v1";
}

/// The change that a record of the trust chain makes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum TrustEntry {
    /// The chain of an installation starts with an approver, who signs this record.
    Started {
        /// The digest of the installation's public key.
        installation: Digest,
        /// Whether the home had approvers before it had a chain.
        adopted: bool,
        /// The approver.
        approver: ChainedApprover,
    },
    /// An approver was added; signed by an approver.
    ApproverAdded {
        /// The approver.
        approver: ChainedApprover,
    },
    /// An approver was revoked; signed with the installation's key.
    ApproverRevoked {
        /// The revocation.
        revocation: Revocation,
    },
    /// An admission was signed; signed by an approver. It replaces an earlier one of the same name.
    AdmissionSigned {
        /// The kind of thing that it admits.
        kind: AdmissionKind,
        /// Which one, by its name.
        name: String,
        /// The digest of the signed admission.
        record: Digest,
    },
    /// An admission was revoked; signed with the installation's key.
    AdmissionRevoked {
        /// The kind of thing that it admitted.
        kind: AdmissionKind,
        /// Which one, by its name.
        name: String,
    },
    /// An approval was granted or denied; signed by an approver.
    ApprovalRuled {
        /// Which approval.
        approval: ApprovalId,
        /// Yes or no.
        answer: Answer,
        /// The digest of the signed ruling.
        record: Digest,
    },
    /// A run used an approval; signed with the installation's key.
    ApprovalConsumed {
        /// Which approval.
        approval: ApprovalId,
        /// Which run.
        run: RunId,
    },
    /// An operator accepted or rejected a result; signed by an approver.
    OutcomeGiven {
        /// Which run.
        run: RunId,
        /// Accepted or rejected.
        outcome: OutcomeWord,
        /// The digest of the signed outcome.
        record: Digest,
    },
    /// An egress grant was revoked; signed with the installation's key.
    EgressGrantRevoked {
        /// The digest of the grant.
        grant: Digest,
    },
    /// The egress list of the installation was signed; signed by an approver. It replaces every earlier one.
    EgressListSigned {
        /// The number of the list.
        serial: u64,
        /// The digest of the signed list.
        record: Digest,
    },
}

impl TrustEntry {
    /// Whether it only takes trust away, so that the installation's key is enough to sign it.
    #[must_use]
    pub fn takes_away(&self) -> bool {
        match self {
            Self::ApproverRevoked { .. }
            | Self::AdmissionRevoked { .. }
            | Self::ApprovalConsumed { .. }
            | Self::EgressGrantRevoked { .. } => true,
            Self::Started { .. }
            | Self::ApproverAdded { .. }
            | Self::AdmissionSigned { .. }
            | Self::ApprovalRuled { .. }
            | Self::OutcomeGiven { .. }
            | Self::EgressListSigned { .. } => false,
        }
    }
}

/// An approver in the trust chain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ChainedApprover {
    /// The approver's name.
    pub name: ApproverName,
    /// The public key, as PEM.
    pub public_key: String,
    /// The digest of the signed approver record.
    pub record: Digest,
}
