//! Errors about approvers.

use std::io;
use std::path::{Path, PathBuf};

use herma_core::Digest;
use herma_core::approver::ApproverName;
use herma_core::visible::visible_line;
use herma_evidence::KeyError;

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
    /// A file is not what its name says.
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
    /// Nobody becomes the first a second time: everything that the first one let in would be the second one's.
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
    #[error("{}", visible_line(.0))]
    Untrusted(String),
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

/// A path whose name anybody may have chosen, so that it hides nothing and stays on its line.
fn shown(path: &Path) -> String {
    visible_line(&path.to_string_lossy())
}
