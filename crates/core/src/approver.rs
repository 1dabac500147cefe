//! Approvers: the people whose signatures permit things. No agent can sign for a person, because it never sees the key.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::digest::Digest;
use crate::signed::Signable;
use crate::trust_head::TrustHead;

/// The name of an approver: lower-case letters, digits, `_` and `-`, starting with a letter. It has no dot, so that no
/// name is the start of another's files.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String", extend("pattern" = "^[a-z][a-z0-9_-]{0,63}$"))]
pub struct ApproverName(String);

impl ApproverName {
    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for ApproverName {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let letter = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'_' | b'-');
        let sound = text.len() <= 64
            && text.starts_with(|c: char| c.is_ascii_lowercase())
            && text.bytes().all(letter);
        sound.then_some(Self(text)).ok_or_else(|| {
            "an approver's name is 1 to 64 lower-case letters, digits, `_` and `-`, starting with a letter"
                .to_owned()
        })
    }
}

impl FromStr for ApproverName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::try_from(text.to_owned())
    }
}

impl From<ApproverName> for String {
    fn from(name: ApproverName) -> Self {
        name.0
    }
}

impl fmt::Display for ApproverName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A statement that this key is a person's. The first approver of an installation vouches for itself; each later one is signed by
/// an earlier one, so that no one becomes an approver by writing a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ApproverRecord {
    /// The approver's name.
    pub name: ApproverName,
    /// The public key, as PEM.
    pub public_key: String,
    /// The digest of the public key.
    pub key_id: Digest,
    /// How the private key is kept.
    pub custody: Custody,
    /// The approver who introduced this one; the first introduces itself.
    pub introduced_by: ApproverName,
    /// When.
    pub created_at: Timestamp,
    /// The head of the trust chain that the signer saw; none in records of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trust_head: Option<TrustHead>,
}

impl Signable for ApproverRecord {
    const KIND: &'static str = "herma.approver/v1";
}

/// How an approver's private key is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Custody {
    /// In the installation, locked by a passphrase.
    Passphrase,
    /// In an environment that agents never see: a token for automation.
    Token,
}

/// That a key must not be believed any more. It is not signed: it only takes away.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Revocation {
    /// The approver's name.
    pub name: ApproverName,
    /// Which key.
    pub key_id: Digest,
    /// Why.
    pub reason: String,
    /// The keys that it had introduced until then. Those stay; a later one does not, whatever date it names.
    pub keeps: BTreeSet<Digest>,
    /// When.
    pub revoked_at: Timestamp,
}
