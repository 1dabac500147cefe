//! A record with the signature of who made it. `herma_evidence::signed` makes and checks the signatures.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::digest::Digest;

/// A kind of record that can be signed. Its name goes into the signed bytes, so that a signature under one kind of
/// record is never one under another.
pub trait Signable: Serialize {
    /// The kind and version, such as `herma.grant/v1`.
    const KIND: &'static str;
}

/// A record and the signature over its canonical form.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Signed<T> {
    /// The signed record.
    pub record: T,
    /// The digest of the key that it says it was signed with.
    pub key_id: Digest,
    /// The Ed25519 signature in base64.
    pub signature: String,
}
