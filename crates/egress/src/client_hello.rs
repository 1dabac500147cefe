//! Parses the TLS `ClientHello` (RFC 8446, section 4.1.2) for its server name indication (SNI, RFC 6066).
//!
//! No byte of a tunnel passes before, so the parser is bounded, and strict: bytes in which another parser could find
//! another name are refused. The bytes are forwarded unchanged.

mod message;
mod records;

pub use records::Reader;

use crate::host::{Host, Name};
use crate::reason::Reason;

/// The largest `ClientHello` message. With post-quantum key shares it has about 2 KiB.
pub const MAX_MESSAGE_BYTES: usize = 16 << 10;
/// The most bytes on the wire, with record headers.
pub const MAX_HELLO_BYTES: usize = 32 << 10;

/// The result of the bytes so far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Read {
    /// The message is incomplete.
    More,
    /// The message is complete.
    ClientHello(ClientHello),
    /// It is refused, whatever follows.
    Refused(ClientHelloError),
}

/// A complete `ClientHello`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientHello {
    /// The SNI.
    pub name: Option<Name>,
}

/// Why a `ClientHello` is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClientHelloError {
    /// It is something else.
    #[error("the first bytes are not a TLS handshake")]
    NotTls,
    /// It is too large.
    #[error("the hello has more than {MAX_MESSAGE_BYTES} bytes, or {MAX_HELLO_BYTES} with its records")]
    TooLarge,
    /// It breaks the format.
    #[error("the hello is malformed: {0}")]
    Malformed(&'static str),
    /// It names several hosts.
    #[error("the hello names more than one host")]
    TwoNames,
    /// It names something that is no host.
    #[error("the hello names something that is not a full host name")]
    BadName,
    /// It names no host.
    #[error("the hello names no host")]
    NoName,
    /// The SNI is not the host of the CONNECT.
    #[error("the hello names another host than the tunnel was asked for")]
    SniMismatch,
    /// It has an Encrypted Client Hello extension.
    #[error("the hello has an encrypted part that can name another host")]
    Encrypted,
}

impl ClientHelloError {
    /// The reason that it is denied for.
    #[must_use]
    pub fn reason(self) -> Reason {
        match self {
            Self::NotTls => Reason::NotTls,
            Self::TooLarge | Self::Malformed(_) | Self::TwoNames | Self::BadName => Reason::BadClientHello,
            Self::NoName => Reason::NoName,
            Self::SniMismatch => Reason::OtherName,
            Self::Encrypted => Reason::EncryptedHello,
        }
    }
}

impl ClientHello {
    /// Checks the SNI against the host of the tunnel. For an address there must be none.
    pub fn check_sni(&self, host: &Host) -> Result<(), ClientHelloError> {
        match (host, &self.name) {
            (Host::Name(host), Some(name)) if host == name => Ok(()),
            (Host::Address(_), None) => Ok(()),
            (Host::Name(_), None) => Err(ClientHelloError::NoName),
            (_, Some(_)) => Err(ClientHelloError::SniMismatch),
        }
    }
}

/// Parses the first bytes of a tunnel.
#[must_use]
pub fn read(bytes: &[u8]) -> Read {
    Reader::default().push(bytes)
}
