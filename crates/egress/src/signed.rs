//! Lists that carry a signature by a named key. One that does not hold is an error, and the last good one is kept.

use herma_core::signed::{Signable, Signed};
use herma_evidence::keys::PublicKey;
use herma_evidence::signed::{BadSignature, check};
use serde::{Deserialize, Serialize};

use crate::rules::{Allowlist, BadRule};

/// The largest file that is read.
const MAX_LIST_BYTES: usize = 1 << 20;

/// A list as it is signed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SignedList {
    /// Counts up with every change, so that an older list cannot be put in the place of a newer one.
    pub serial: u64,
    /// The entries.
    pub hosts: Vec<String>,
}

impl Signable for SignedList {
    const KIND: &'static str = "herma.egress-list/v1";
}

/// A key, and its name.
#[derive(Clone, Debug)]
pub struct NamedKey {
    /// Its name in the configuration.
    pub name: String,
    /// The key.
    pub key: PublicKey,
}

/// A list that was verified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verified {
    /// Which one.
    pub serial: u64,
    /// Its rules.
    pub allowlist: Allowlist,
    /// As it is written.
    pub hosts: Vec<String>,
}

/// A list does not count.
#[derive(Debug, thiserror::Error)]
pub enum BadList {
    /// The file is too large.
    #[error("the signed egress list has more than {MAX_LIST_BYTES} bytes")]
    TooLarge,
    /// The file is not one.
    #[error("the signed egress list cannot be read: {0}")]
    Unreadable(serde_json::Error),
    /// The signature does not hold.
    #[error("the egress list is not signed by the key `{key}`: {source}; have its holder sign it again")]
    Signature {
        /// The key that it must be signed with.
        key: String,
        /// The problem.
        source: BadSignature,
    },
    /// An entry is no rule.
    #[error("the signed egress list: {0}")]
    Rule(#[from] BadRule),
    /// It is older than the one that counts.
    #[error(
        "the signed egress list has the serial {serial}, and {last} counted before; sign it with a higher one"
    )]
    Older {
        /// The one that it has.
        serial: u64,
        /// The one that counts.
        last: u64,
    },
}

/// Reads a signed list and checks that this key signed it. `last` is the one that counts until now.
pub fn verify(bytes: &[u8], key: &NamedKey, last: Option<&Verified>) -> Result<Verified, BadList> {
    if bytes.len() > MAX_LIST_BYTES {
        return Err(BadList::TooLarge);
    }
    let signed: Signed<SignedList> = serde_json::from_slice(bytes).map_err(BadList::Unreadable)?;
    check(&signed, &key.key).map_err(|source| BadList::Signature { key: key.name.clone(), source })?;
    let SignedList { serial, hosts } = signed.record;
    let allowlist = Allowlist::parse(&hosts)?;
    let verified = Verified { serial, allowlist, hosts };
    match last {
        // The same list may be read again; another one under the same serial may not take its place.
        Some(last) if serial < last.serial || (serial == last.serial && *last != verified) => {
            Err(BadList::Older { serial, last: last.serial })
        }
        _ => Ok(verified),
    }
}
