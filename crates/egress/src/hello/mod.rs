//! Reads the first message of TLS, to learn which host the client names.
//!
//! Nothing passes before this is over, so it is bounded, and it is strict: where another reader could find another name in
//! the same bytes, they are refused. What was read is passed on as it came.

mod message;
mod records;

pub use records::Reader;

use crate::host::{Host, Name};
use crate::reason::Reason;

/// The most bytes of the message itself. Hellos with keys against quantum computers have about 2 KiB.
pub const MOST_MESSAGE: usize = 16 << 10;
/// The most bytes on the wire, with the heads of records.
pub const MOST_BYTES: usize = 32 << 10;

/// What the bytes so far say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Read {
    /// The message is not whole.
    More,
    /// It is whole.
    Hello(Hello),
    /// It is refused, whatever comes.
    Refused(BadHello),
}

/// A hello that came in full.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hello {
    /// The host that the client names.
    pub name: Option<Name>,
}

/// Why a hello is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadHello {
    /// It is something else.
    #[error("what came is not a TLS handshake")]
    NotTls,
    /// It is too large.
    #[error("the hello has more than {MOST_MESSAGE} bytes, or {MOST_BYTES} with its records")]
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
    /// It names another host than the tunnel was asked for.
    #[error("the hello names another host than the tunnel was asked for")]
    OtherName,
    /// The true name is encrypted.
    #[error("the hello has an encrypted part that can name another host")]
    Encrypted,
}

impl BadHello {
    /// The reason that it is denied for.
    #[must_use]
    pub fn reason(self) -> Reason {
        match self {
            Self::NotTls => Reason::NotTls,
            Self::TooLarge | Self::Malformed(_) | Self::TwoNames | Self::BadName => Reason::BadHello,
            Self::NoName => Reason::NoName,
            Self::OtherName => Reason::OtherName,
            Self::Encrypted => Reason::EncryptedHello,
        }
    }
}

impl Hello {
    /// Checks that it names the host of the tunnel. A client names no host where it was given an address.
    pub fn names(&self, host: &Host) -> Result<(), BadHello> {
        match (host, &self.name) {
            (Host::Name(host), Some(name)) if host == name => Ok(()),
            (Host::Address(_), None) => Ok(()),
            (Host::Name(_), None) => Err(BadHello::NoName),
            (_, Some(_)) => Err(BadHello::OtherName),
        }
    }
}

/// What these bytes from the beginning of a tunnel say.
#[must_use]
pub fn read(bytes: &[u8]) -> Read {
    Reader::default().push(bytes)
}
