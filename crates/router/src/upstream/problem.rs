//! Errors of upstreams. Their texts name neither key nor URL.

use std::fmt;
use std::path::PathBuf;

use crate::scripted::{BadScript, SameName};

/// Why an upstream cannot be used. Reported at start.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadUpstream {
    /// The configuration has no URL for it.
    #[error("the upstream `{0}` has no URL; give it one with `url`")]
    NoUrl(String),
    /// Its URL is invalid.
    #[error(
        "the URL of the upstream `{0}` cannot be used; expected `https://HOST[:PORT][/PATH]` without user, query and fragment"
    )]
    Url(String),
    /// Its key is not a valid header value.
    #[error(
        "the key of the upstream `{0}` has characters that no header can have; look for line breaks in it"
    )]
    Key(String),
    /// There is no root certificate.
    #[error(
        "the upstream `{0}` is reached by TLS, and no root certificates were found; install the system's (`ca-certificates`) or name a file with `roots`"
    )]
    NoRoots(String),
    /// Its own root certificates cannot be read.
    #[error("the root certificates of the upstream `{upstream}` in {} {problem}", file.display())]
    Roots {
        /// The upstream.
        upstream: String,
        /// The file.
        file: PathBuf,
        /// The problem.
        problem: &'static str,
    },
    /// TLS cannot be set up at all.
    #[error("TLS for the upstream `{0}` cannot be set up: its protocol versions are not built in")]
    Tls(String),
    /// A script cannot be read.
    #[error("the script {} of the upstream `{upstream}` {problem}", file.display())]
    ScriptFile {
        /// The upstream.
        upstream: String,
        /// The file.
        file: PathBuf,
        /// The problem.
        problem: &'static str,
    },
    /// A file is not a script.
    #[error("{}: {bad}", file.display())]
    Script {
        /// The file.
        file: PathBuf,
        /// The problem.
        bad: BadScript,
    },
    /// Two scripts have the same name.
    #[error("the upstream `{upstream}`: {same}")]
    SameName {
        /// The upstream.
        upstream: String,
        /// The name.
        same: SameName,
    },
}

/// Why there is no response. The texts are fixed: they never hold the text of a network error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendError {
    /// The request was not sent: it can go elsewhere, and costs nothing.
    NotReached(&'static str),
    /// The request may have been sent, and no response came: it may have been charged.
    Ambiguous(&'static str),
    /// The request was sent, and no response head came in time.
    FirstByteTimeout,
}

impl SendError {
    /// The reason code.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            Self::NotReached(word) | Self::Ambiguous(word) => word,
            Self::FirstByteTimeout => "first_byte_timeout",
        }
    }
}

impl fmt::Display for SendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotReached(word) => write!(f, "the upstream was not reached ({word})"),
            Self::Ambiguous(word) => write!(f, "the upstream broke off before its answer began ({word})"),
            Self::FirstByteTimeout => f.write_str("the upstream did not begin its answer in time"),
        }
    }
}

impl std::error::Error for SendError {}
