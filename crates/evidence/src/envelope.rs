//! The attestation's form: an in-toto Statement in a DSSE envelope. Exactly one spelling of each is taken.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use herma_core::trust::TrustHead;
use herma_core::{Digest, RunId, Status};
use serde::{Deserialize, Serialize};

/// The type of the envelope's payload.
pub const PAYLOAD_TYPE: &str = "application/vnd.in-toto+json";
/// The type of the statement.
pub const STATEMENT_TYPE: &str = "https://in-toto.io/Statement/v1";
/// The type of the statement's predicate.
pub const PREDICATE_TYPE: &str = "https://herma.dev/run/v1";

/// A DSSE envelope.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Envelope {
    payload: String,
    #[serde(rename = "payloadType")]
    payload_type: String,
    signatures: Vec<Signature>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Signature {
    keyid: Digest,
    sig: String,
}

/// An in-toto Statement over the files of a bundle.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Statement {
    #[serde(rename = "_type")]
    kind: String,
    subject: Vec<StatementSubject>,
    #[serde(rename = "predicateType")]
    predicate_type: String,
    /// The statement about the run.
    pub predicate: Predicate,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StatementSubject {
    name: String,
    digest: SubjectDigest,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SubjectDigest {
    sha256: String,
}

/// The statement about the run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Predicate {
    /// The run's name.
    pub run_id: RunId,
    /// The contract's digest.
    pub contract_digest: Digest,
    /// The verdict's status.
    pub status: Status,
    /// The version of herma that ran it.
    pub herma_version: String,
    /// The head of the trust chain when the run started; none in bundles of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trust_head: Option<TrustHead>,
}

/// The bytes are not an attestation.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not an attestation: {0}")]
pub struct BadEnvelope(String);

impl Statement {
    /// A statement over these files.
    #[must_use]
    pub fn new(subjects: BTreeMap<String, Digest>, predicate: Predicate) -> Self {
        let subject = |(name, digest): (String, Digest)| StatementSubject {
            name,
            digest: SubjectDigest { sha256: digest.hex() },
        };
        Self {
            kind: STATEMENT_TYPE.to_owned(),
            subject: subjects.into_iter().map(subject).collect(),
            predicate_type: PREDICATE_TYPE.to_owned(),
            predicate,
        }
    }

    /// The files and their digests, sorted by name.
    pub fn subjects(&self) -> impl Iterator<Item = (&str, Digest)> {
        self.subject.iter().filter_map(|s| Some((s.name.as_str(), subject_digest(s)?)))
    }

    fn check(&self) -> Result<(), BadEnvelope> {
        if self.kind != STATEMENT_TYPE || self.predicate_type != PREDICATE_TYPE {
            return Err(BadEnvelope("the statement is of another type".to_owned()));
        }
        if !self.subject.is_sorted_by(|a, b| a.name < b.name) {
            return Err(BadEnvelope("the subjects are not sorted, or one is there twice".to_owned()));
        }
        match self.subject.iter().find(|s| subject_digest(s).is_none()) {
            Some(subject) => Err(BadEnvelope(format!("the digest of {:?} is not one", subject.name))),
            None => Ok(()),
        }
    }
}

fn subject_digest(subject: &StatementSubject) -> Option<Digest> {
    format!("sha256:{}", subject.digest.sha256).parse().ok()
}

impl Envelope {
    /// The envelope of a statement; `sign` makes the signature and says by which key.
    pub fn seal(
        statement: &Statement,
        sign: impl FnOnce(&[u8]) -> (Digest, [u8; 64]),
    ) -> Result<Self, serde_json::Error> {
        let payload = serde_json_canonicalizer::to_vec(statement)?;
        let (keyid, sig) = sign(&signed_bytes(&payload));
        Ok(Self {
            payload: STANDARD.encode(payload),
            payload_type: PAYLOAD_TYPE.to_owned(),
            signatures: vec![Signature { keyid, sig: STANDARD.encode(sig) }],
        })
    }

    /// The bytes of the file.
    pub fn to_bytes(&self) -> Result<Vec<u8>, serde_json::Error> {
        serde_json_canonicalizer::to_vec(self)
    }

    /// Reads an envelope; the bytes must be exactly those that `to_bytes` gives.
    pub fn parse(bytes: &[u8]) -> Result<Self, BadEnvelope> {
        let envelope: Self = serde_json::from_slice(bytes).map_err(|e| BadEnvelope(e.to_string()))?;
        if !envelope.to_bytes().is_ok_and(|canonical| canonical == bytes) {
            return Err(BadEnvelope("the file is not the canonical form of its envelope".to_owned()));
        }
        if envelope.payload_type != PAYLOAD_TYPE {
            return Err(BadEnvelope("the payload is of another type".to_owned()));
        }
        envelope.signature()?;
        envelope.statement()?;
        Ok(envelope)
    }

    /// The statement in the envelope.
    pub fn statement(&self) -> Result<Statement, BadEnvelope> {
        let payload = self.payload()?;
        let statement: Statement =
            serde_json::from_slice(&payload).map_err(|e| BadEnvelope(e.to_string()))?;
        if !serde_json_canonicalizer::to_vec(&statement).is_ok_and(|canonical| canonical == payload) {
            return Err(BadEnvelope("the payload is not the canonical form of its statement".to_owned()));
        }
        statement.check()?;
        Ok(statement)
    }

    /// The key that the envelope says it was signed with, and the signature.
    pub fn signature(&self) -> Result<(Digest, [u8; 64]), BadEnvelope> {
        let [signature] = self.signatures.as_slice() else {
            return Err(BadEnvelope("it has not exactly one signature".to_owned()));
        };
        let bytes =
            STANDARD.decode(&signature.sig).map_err(|e| BadEnvelope(format!("the signature: {e}")))?;
        let bytes = bytes.try_into().map_err(|_| BadEnvelope("the signature has not 64 bytes".to_owned()))?;
        Ok((signature.keyid, bytes))
    }

    /// The bytes that the signature is over.
    pub fn signed(&self) -> Result<Vec<u8>, BadEnvelope> {
        Ok(signed_bytes(&self.payload()?))
    }

    fn payload(&self) -> Result<Vec<u8>, BadEnvelope> {
        STANDARD.decode(&self.payload).map_err(|e| BadEnvelope(format!("the payload: {e}")))
    }
}

/// DSSE's pre-authentication encoding.
fn signed_bytes(payload: &[u8]) -> Vec<u8> {
    let mut bytes = format!("DSSEv1 {} {PAYLOAD_TYPE} {} ", PAYLOAD_TYPE.len(), payload.len()).into_bytes();
    bytes.extend_from_slice(payload);
    bytes
}
