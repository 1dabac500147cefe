//! A position in the trust chain, which signed records and bundles name.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::digest::Digest;

/// A position in the trust chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TrustHead {
    /// The sequence number of the last record; 0 for a chain without records.
    pub sequence: u64,
    /// The digest of that record's line; the digest of nothing for a chain without records.
    pub digest: Digest,
}

impl TrustHead {
    /// The head of a chain without records.
    #[must_use]
    pub fn empty() -> Self {
        Self { sequence: 0, digest: Digest::of(b"") }
    }
}
