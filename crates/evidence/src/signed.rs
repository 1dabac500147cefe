//! Signatures over single records. The signed bytes are the record's kind and its canonical form.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use herma_core::Digest;
use herma_core::signed::{Signable, Signed};
use serde::ser::Error as _;
use serde_json::Value;

use crate::keys::{InstallationKey, PublicKey};

/// The largest integer that the canonical form represents exactly.
const MAX_EXACT_INTEGER: u64 = 1 << 53;

/// A signing key.
pub trait Signer {
    /// The digest of the public key.
    fn key_id(&self) -> Digest;
    /// The Ed25519 signature over the bytes.
    fn sign(&self, bytes: &[u8]) -> [u8; 64];
}

impl Signer for InstallationKey {
    fn key_id(&self) -> Digest {
        InstallationKey::key_id(self)
    }

    fn sign(&self, bytes: &[u8]) -> [u8; 64] {
        InstallationKey::sign(self, bytes)
    }
}

/// The signature of a record does not hold.
#[derive(Debug, thiserror::Error)]
pub enum BadSignature {
    /// The record says that another key signed it.
    #[error("it was signed with the key {said}, not with {expected}")]
    OtherKey {
        /// The key that the record names.
        said: Digest,
        /// The key that was asked for.
        expected: Digest,
    },
    /// The signature is not 64 bytes in strict base64.
    #[error("the signature is not 64 bytes in base64")]
    Malformed,
    /// The signature is over another record, or by another key.
    #[error("the signature is not that of {0} over this record: one of them was changed")]
    Wrong(Digest),
    /// The record has no canonical form.
    #[error("the record cannot be signed: {0}")]
    Record(#[from] serde_json::Error),
}

/// Signs a record.
pub fn sign<T: Signable>(record: T, signer: &dyn Signer) -> Result<Signed<T>, serde_json::Error> {
    let signature = STANDARD.encode(signer.sign(&signed_bytes(&record)?));
    Ok(Signed { record, key_id: signer.key_id(), signature })
}

/// Checks that this key signed exactly this record, as this kind of record.
pub fn check<T: Signable>(signed: &Signed<T>, key: &PublicKey) -> Result<(), BadSignature> {
    let expected = key.key_id();
    if signed.key_id != expected {
        return Err(BadSignature::OtherKey { said: signed.key_id, expected });
    }
    let signature = STANDARD.decode(&signed.signature).map_err(|_| BadSignature::Malformed)?;
    let signature = signature.try_into().map_err(|_| BadSignature::Malformed)?;
    if key.verifies(&signed_bytes(&signed.record)?, &signature) {
        Ok(())
    } else {
        Err(BadSignature::Wrong(expected))
    }
}

/// The digest of a record: that of the bytes that a signature is over.
pub fn digest<T: Signable>(record: &T) -> Result<Digest, serde_json::Error> {
    Ok(Digest::of(&signed_bytes(record)?))
}

/// The kind, a zero byte, and the canonical form (RFC 8785). No kind holds a zero byte, so no two records of different
/// kinds have the same bytes.
fn signed_bytes<T: Signable>(record: &T) -> Result<Vec<u8>, serde_json::Error> {
    let record = serde_json::to_value(record)?;
    if !is_exact(&record) {
        // Its neighbours would have the same canonical form, and so the same signature.
        return Err(serde_json::Error::custom(format!("a whole number in it is above {MAX_EXACT_INTEGER}")));
    }
    let mut bytes = T::KIND.as_bytes().to_vec();
    bytes.push(0);
    bytes.extend(serde_json_canonicalizer::to_vec(&record)?);
    Ok(bytes)
}

fn is_exact(value: &Value) -> bool {
    match value {
        Value::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(whole), _) => whole.unsigned_abs() <= MAX_EXACT_INTEGER,
            (None, whole) => whole.is_none(),
        },
        Value::Array(items) => items.iter().all(is_exact),
        Value::Object(map) => map.values().all(is_exact),
        Value::Null | Value::Bool(_) | Value::String(_) => true,
    }
}
