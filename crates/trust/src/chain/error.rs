//! Why the trust chain cannot be used.

use std::io;

use herma_core::trust::TrustHead;
use herma_evidence::BrokenTrust;

/// The chain's file, as messages name it: reports hold them, and do not say where the home is.
const CHAIN: &str = "trust/chain.jsonl in herma's home";

/// The trust chain cannot be used, so that nothing that needs trust can go on.
#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    /// A file could not be read or written.
    #[error("{what} could not be {doing}: {source}")]
    Io {
        /// Which file, by its place in the home.
        what: String,
        /// The operation that failed.
        doing: &'static str,
        /// The error of the system.
        source: io::Error,
    },
    /// A record does not continue the chain.
    #[error("{CHAIN} does not hold: {broken}; restore the file from a backup")]
    Broken {
        /// Which record, and what is wrong.
        #[source]
        broken: BrokenTrust,
    },
    /// The chain was changed while this process used it.
    #[error("{CHAIN} was changed while herma used it; restore the file from a backup")]
    Changed,
    /// Something saw a head that is not in the chain.
    #[error(
        "the trust chain was rolled back or replaced: {by} names its record {}, {}, and the chain has {} records without that one; restore {CHAIN} from a backup",
        known.sequence, known.digest, head.sequence
    )]
    RolledBack {
        /// The record that names the head.
        by: String,
        /// The head that it names.
        known: TrustHead,
        /// Where the chain ends.
        head: TrustHead,
    },
    /// The home is of a version without the chain, or the chain was removed.
    #[error(
        "this home has approvers and no trust chain: if it was made by an earlier version of herma, an approver adopts it once with `herma trust adopt`; otherwise restore {CHAIN} from a backup"
    )]
    Missing,
    /// There is a chain already, so nothing starts another.
    #[error(
        "this installation has a trust chain of {} records: it starts once; restore its approvers from a backup of keys/approvers",
        head.sequence
    )]
    Started {
        /// Where the chain ends.
        head: TrustHead,
    },
    /// Only herma with the installation's key can append such a record.
    #[error("the installation's key is not at hand")]
    NoKey,
    /// Only a trusted approver adopts a home.
    #[error("the home cannot be adopted: {0}")]
    NotAdopted(String),
    /// The record has no canonical form.
    #[error("the record of the trust chain cannot be signed: {0}")]
    Record(#[from] serde_json::Error),
}
