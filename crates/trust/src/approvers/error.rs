//! Errors about approvers.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use herma_core::approver::ApproverName;
use herma_core::trust::TrustHead;
use herma_core::visible::visible_line;
use herma_core::{Digest, Timestamp};
use herma_evidence::{BadSignature, KeyError};

use crate::chain::TrustError;

/// An approver cannot be made, found, opened or revoked.
#[derive(Debug, thiserror::Error)]
pub enum ApproverError {
    /// A file could not be read or written.
    #[error("{} could not be {doing}: {source}", shown(path))]
    Io {
        /// The file.
        path: PathBuf,
        /// The operation that failed.
        doing: &'static str,
        /// The error of the system.
        source: io::Error,
    },
    /// The content of a file does not match its name.
    #[error("{} is not what it should be: {}; restore it, or move it away", shown(path), visible_line(cause))]
    Malformed {
        /// The file.
        path: PathBuf,
        /// The problem.
        cause: String,
    },
    /// Others than the owner can reach a private key.
    #[error(
        "the key file {} can be read by others (mode {mode:03o}); run `chmod 600` on it, or revoke the approver if others had access",
        shown(path)
    )]
    Exposed {
        /// The file.
        path: PathBuf,
        /// Its permissions.
        mode: u32,
    },
    /// The key, the passphrase or the token cannot be used.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// The trust chain cannot be used.
    #[error(transparent)]
    Trust(#[from] TrustError),
    /// The record has no canonical form.
    #[error("the approver's record cannot be signed: {0}")]
    Record(#[from] serde_json::Error),
    /// Names are used once, also after revocation: old signatures keep their meaning.
    #[error("there is or was an approver called {0}; a name is used once, choose another")]
    NameTaken(ApproverName),
    /// Only the first approver vouches for itself.
    #[error("this installation has approvers: {0} has to be let in by one of them")]
    NeedsIntroducer(ApproverName),
    /// There is one first approver: a second one would inherit everything that the first let in.
    #[error(
        "{} names {key} as the key of the first approver, and no record holds it: restore that approver's <name>.json beside it from a backup, nobody can be let in until then; only if making the first approver was cut off, so that there never was one, remove {}",
        shown(path),
        shown(path)
    )]
    FirstIsMissing {
        /// The file that names the first approver's key.
        path: PathBuf,
        /// That key.
        key: Digest,
    },
    /// There is no such approver.
    #[error("there is no approver called {0}")]
    Unknown(ApproverName),
    /// The token is the key of no approver.
    #[error("the token is that of no approver of this installation")]
    UnknownToken,
    /// The approver's signatures do not count.
    #[error("{}", visible_line(&.0.to_string()))]
    Untrusted(#[source] Distrust),
    /// The file holds another key than the one that was let in.
    #[error("the key of {0} is not the one that was let in under that name")]
    OtherKey(ApproverName),
    /// The key is not in the installation.
    #[error("the key of {0} is a token, kept outside of the installation; it has no passphrase")]
    KeptElsewhere(ApproverName),
    /// A key in the installation is always locked.
    #[error("a key that is kept in the installation needs a passphrase")]
    NoPassphrase,
    /// A token is not kept, so nothing is locked.
    #[error("a token has no passphrase: it is printed once and kept nowhere")]
    TokenWithPassphrase,
    /// It has no more trust to lose.
    #[error("{0} is revoked already")]
    AlreadyRevoked(ApproverName),
    /// Without a trusted approver the installation could never admit anything again.
    #[error(
        "{0} is the last approver who is trusted: after it nobody can grant, admit, accept or let in another approver here, ever; let in another first with `herma approver init NAME --by {0}`, or add `--last` if that is what you mean"
    )]
    Last(ApproverName),
    /// A revocation needs a reason.
    #[error("a revocation needs a reason")]
    NoReason,
}

/// The reason for which an approver, or a signature of one, does not count.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Distrust {
    /// The approver was revoked.
    #[error("{name} was revoked on {at}: {reason}")]
    Revoked {
        /// The approver.
        name: ApproverName,
        /// The time of the revocation.
        at: Timestamp,
        /// Its reason.
        reason: String,
    },
    /// The introductions of the approver do not hold.
    #[error("{name} is not trusted: {source}")]
    Introduction {
        /// The approver.
        name: ApproverName,
        /// The place where they break.
        source: BrokenIntroduction,
    },
    /// The approver is unknown, or its files cannot be read.
    #[error("{0}")]
    Approver(#[source] Arc<ApproverError>),
    /// The record names no approver.
    #[error("{0}")]
    BadName(String),
    /// The approver's key cannot be used.
    #[error("{0}")]
    Key(#[source] Arc<KeyError>),
    /// The signature is not one of this key under this record.
    #[error("the signature of {by} does not hold: {source}")]
    Signature {
        /// The approver.
        by: ApproverName,
        /// The problem.
        source: Arc<BadSignature>,
    },
    /// The trust chain cannot be used.
    #[error("{0}")]
    Chain(#[source] Arc<TrustError>),
    /// The signer saw a head that the chain does not contain.
    #[error(
        "its signer saw record {} of the trust chain, {}, which is not there any more: the chain was rolled back",
        .0.sequence, .0.digest
    )]
    RolledBack(TrustHead),
    /// The record has no canonical form.
    #[error("{0}")]
    Record(#[source] Arc<serde_json::Error>),
    /// The approver ruled again.
    #[error("a later ruling on the same approval replaced it")]
    Replaced,
    /// The chain has no such ruling.
    #[error("the trust chain does not name it")]
    NotInChain,
}

/// The place where the introductions of an approver break, on the way to the first one.
#[derive(Clone, Debug, thiserror::Error)]
pub enum BrokenIntroduction {
    /// A record on the way is missing.
    #[error("the record of {0} is not there")]
    Missing(ApproverName),
    /// The record of an introducer is missing.
    #[error("the record of {introducer}, who let {name} in, is not there")]
    MissingIntroducer {
        /// The introducer.
        introducer: ApproverName,
        /// The approver that it introduced.
        name: ApproverName,
    },
    /// A record has a key that cannot be read.
    #[error("{name}: {source}")]
    Key {
        /// The approver.
        name: ApproverName,
        /// The problem.
        source: Arc<KeyError>,
    },
    /// A record names another key than it contains.
    #[error("the record of {0} names another key than the one it holds")]
    OtherKey(ApproverName),
    /// The introductions form a cycle.
    #[error("the introductions of {0} go in a circle")]
    Cycle(ApproverName),
    /// The signature under an introduction does not hold.
    #[error("the introduction of {name} does not hold: {source}")]
    Signature {
        /// The approver.
        name: ApproverName,
        /// The problem.
        source: Arc<BadSignature>,
    },
    /// Only the first approver vouches for itself.
    #[error("{0} vouches for itself and is not the first approver")]
    NotFirst(ApproverName),
    /// The introducer had been revoked.
    #[error("{introducer} was revoked before it let {name} in")]
    RevokedIntroducer {
        /// The introducer.
        introducer: ApproverName,
        /// The approver that it introduced.
        name: ApproverName,
    },
    /// The chain has another record of this approver, or none.
    #[error("its record is not the one in the trust chain")]
    NotInChain,
    /// The trust chain cannot be used.
    #[error("{0}")]
    Chain(#[source] Arc<TrustError>),
}

/// A path whose name anybody may have chosen, so that it hides nothing and stays on its line.
fn shown(path: &Path) -> String {
    visible_line(&path.to_string_lossy())
}
