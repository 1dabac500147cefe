//! Errors of upstreams. Their texts name neither key nor URL.

use std::path::PathBuf;

use herma_scripted::{BadScript, SameName};

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

/// Why there is no response. Codes and texts are fixed: they never hold the text of a network error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// The request was not sent: it can go elsewhere, and costs nothing.
    #[error("the upstream was not reached ({})", .0.code())]
    NotReached(NotReached),
    /// The request may have been sent, and no response came: it may have been charged.
    #[error("the upstream gave no response ({})", .0.code())]
    Ambiguous(Ambiguous),
}

/// Why a request was not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.code())]
pub enum NotReached {
    /// DNS has no address for the host.
    NameNotFound,
    /// The host refused the connection.
    ConnectionRefused,
    /// The connection was not open in time.
    ConnectTimeout,
    /// The TLS handshake failed.
    TlsFailed,
    /// The upstream does not have the endpoint.
    UnsupportedEndpoint,
    /// Another error before the request was sent.
    Other,
}

/// Why no response came to a request that may have been sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ambiguous {
    /// The response is not HTTP.
    NotHttp,
    /// The connection closed before the head of the response.
    ClosedBeforeHeaders,
    /// The head of the response did not come in time.
    FirstByteTimeout,
}

impl SendError {
    /// The code in records and metrics.
    #[must_use]
    pub fn code(self) -> &'static str {
        match self {
            Self::NotReached(why) => why.code(),
            Self::Ambiguous(why) => why.code(),
        }
    }
}

impl NotReached {
    /// The code in records and metrics.
    #[must_use]
    pub fn code(self) -> &'static str {
        match self {
            Self::NameNotFound => "name_not_found",
            Self::ConnectionRefused => "connection_refused",
            Self::ConnectTimeout => "connect_timeout",
            Self::TlsFailed => "tls_failed",
            Self::UnsupportedEndpoint => "unsupported_endpoint",
            Self::Other => "not_reached",
        }
    }
}

impl Ambiguous {
    /// The code in records, metrics and error bodies.
    #[must_use]
    pub fn code(self) -> &'static str {
        match self {
            Self::NotHttp => "not_http",
            Self::ClosedBeforeHeaders => "closed_before_headers",
            Self::FirstByteTimeout => "first_byte_timeout",
        }
    }
}
