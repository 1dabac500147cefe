//! Admissions: records by which a person permits something. Each is a YAML file that people read and edit, and it
//! counts only with an approver's signature over its exact bytes.

mod complete;
mod draft;
mod endpoint;
mod engine;
mod field;
mod model;
mod name;
mod review;
mod target;
#[cfg(test)]
mod tests;
mod text;

use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use complete::{Incomplete, Refusal};
pub use draft::{AdmissionDraft, BadAdmission, BadField, MAX_BYTES};
pub use engine::{EngineAdmission, EngineDraft, EngineKind};
pub use field::{Field, FieldValue};
pub use model::{CredentialSource, ModelAdmission, ModelDraft, ModelKind, NetworkClass};
pub use name::{AdmissionId, ModelName, ModelRef, ProviderName, TargetName};
pub use review::{Review, ReviewFacts, ReviewTrigger};
pub use target::{OutcomeRequired, RiskClass, TargetAdmission, TargetDraft, TargetKind};
pub use text::{AbsolutePath, Line};

use crate::approver::ApproverName;
use crate::digest::Digest;
use crate::signed::Signable;
use crate::trust_head::TrustHead;

/// The kind of thing that an admission permits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AdmissionKind {
    /// An engine's program.
    Engine,
    /// One exact model of one provider.
    Model,
    /// A repository.
    Target,
}

impl AdmissionKind {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Engine, Self::Model, Self::Target];

    /// The name as it is written in files and on the screen.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Engine => "engine",
            Self::Model => "model",
            Self::Target => "target",
        }
    }
}

impl fmt::Display for AdmissionKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for AdmissionKind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == text).ok_or_else(|| {
            let shown: String = text.chars().take(40).collect();
            format!("`{shown}` is not a kind of admission: expected engine, model or target")
        })
    }
}

/// A person's signature under an admission file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SignedAdmission {
    /// The kind of thing that it permits.
    pub kind: AdmissionKind,
    /// Which one, by its name.
    pub name: String,
    /// The digest of the file's exact bytes.
    pub digest: Digest,
    /// The approver who signed it.
    pub approver: ApproverName,
    /// When.
    pub signed_at: Timestamp,
    /// The head of the trust chain that the signer saw; none in records of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trust_head: Option<TrustHead>,
}

impl Signable for SignedAdmission {
    const KIND: &'static str = "herma.admission/v1";
}

/// The revocation of an admission. A signature from before that time does not count any more, even if the signature
/// is put back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AdmissionRevocation {
    /// The kind of thing that it permitted.
    pub kind: AdmissionKind,
    /// Which one, by its name.
    pub name: String,
    /// The reason of the revocation.
    pub reason: Line,
    /// When.
    pub revoked_at: Timestamp,
}
