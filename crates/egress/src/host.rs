//! A host as a rule, a request or a TLS hello names it, in one spelling only.
//!
//! Where a host could be written in two ways, two readers can take it for two hosts. So names are ASCII and lower-cased,
//! have at least two labels (a single one would go through the system's search list), no dot at their end and no empty
//! label. Addresses have their plain form: `127.1`, `0x7f000001` and `2130706433` are neither names nor addresses.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The longest name, and the longest label of one.
const MAX_NAME_BYTES: usize = 253;
const MAX_LABEL_BYTES: usize = 63;

/// A full name, lower-cased.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(String);

/// A name or an address.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Host {
    /// A name, to be resolved.
    Name(Name),
    /// An address, written as such.
    Address(IpAddr),
}

/// Why a text is no host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadHost {
    /// There is nothing.
    #[error("there is no host")]
    Empty,
    /// It is longer than names can be.
    #[error("a name has at most {MAX_NAME_BYTES} characters, and {MAX_LABEL_BYTES} between two dots")]
    TooLong,
    /// It has characters beyond ASCII.
    #[error("a name is written in ASCII: an international one begins with `xn--`")]
    NotAscii,
    /// It ends with a dot.
    #[error("a name has no dot at its end")]
    TrailingDot,
    /// It has an empty label.
    #[error("a name has something before and after each dot")]
    EmptyLabel,
    /// It has a character that names do not have.
    #[error("a name has only letters, digits, dots, and hyphens inside")]
    Character,
    /// It is one label.
    #[error("a name is full, with a dot in it: a short one would depend on the machine's search list")]
    Short,
    /// It ends like an address and is none in the plain form.
    #[error("an address is written in its plain form, like `192.0.2.1` or `[2001:db8::1]`")]
    Address,
    /// The port is not one.
    #[error("a port is a number from 1 to 65535, without zeros before it")]
    Port,
}

impl Name {
    /// Reads a name; upper case is taken and lowered.
    pub fn parse(text: &str) -> Result<Self, BadHost> {
        if text.is_empty() {
            return Err(BadHost::Empty);
        }
        if !text.is_ascii() {
            return Err(BadHost::NotAscii);
        }
        if text.len() > MAX_NAME_BYTES {
            return Err(BadHost::TooLong);
        }
        if text.len() > 1 && text.ends_with('.') {
            return Err(BadHost::TrailingDot);
        }
        for label in text.split('.') {
            check_label(label)?;
        }
        let Some((_, last)) = text.rsplit_once('.') else { return Err(BadHost::Short) };
        if is_number(last) {
            return Err(BadHost::Address);
        }
        Ok(Self(text.to_ascii_lowercase()))
    }

    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether it is below a domain, at any depth. A domain is not below itself.
    #[must_use]
    pub fn is_below(&self, domain: &Self) -> bool {
        self.0.strip_suffix(domain.as_str()).is_some_and(|before| before.len() > 1 && before.ends_with('.'))
    }
}

fn check_label(label: &str) -> Result<(), BadHost> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-';
    match label {
        "" => Err(BadHost::EmptyLabel),
        _ if label.len() > MAX_LABEL_BYTES => Err(BadHost::TooLong),
        _ if label.starts_with('-') || label.ends_with('-') || !label.chars().all(is_plain) => {
            Err(BadHost::Character)
        }
        _ => Ok(()),
    }
}

/// Whether a reader of old address forms would take a last label for a number.
fn is_number(label: &str) -> bool {
    let hex = label.strip_prefix("0x").or_else(|| label.strip_prefix("0X"));
    label.chars().all(|c| c.is_ascii_digit())
        || hex.is_some_and(|digits| digits.chars().all(|c| c.is_ascii_hexdigit()))
}

impl Host {
    /// Reads a host. An IPv6 address is in brackets.
    pub fn parse(text: &str) -> Result<Self, BadHost> {
        if let Some(inside) = text.strip_prefix('[') {
            let address: Option<Ipv6Addr> = inside.strip_suffix(']').and_then(|inside| inside.parse().ok());
            return address.map(|address| Self::Address(address.into())).ok_or(BadHost::Address);
        }
        match text.parse::<Ipv4Addr>() {
            Ok(address) => Ok(Self::Address(address.into())),
            Err(_) if !text.contains('.') && !text.is_empty() && is_number(text) => Err(BadHost::Address),
            Err(_) => Name::parse(text).map(Self::Name),
        }
    }

    /// Reads `host`, or `host:port`.
    pub fn parse_with_port(text: &str) -> Result<(Self, Option<u16>), BadHost> {
        let (host, port) = split_port(text);
        Ok((Self::parse(host)?, port.map(read_port).transpose()?))
    }
}

/// Cuts `host:port` into two, unread.
pub(crate) fn split_port(text: &str) -> (&str, Option<&str>) {
    match text.rsplit_once(':') {
        // The last colon of an address in brackets is inside of them.
        Some((host, port)) if !port.contains(']') => (host, Some(port)),
        _ => (text, None),
    }
}

pub(crate) fn read_port(text: &str) -> Result<u16, BadHost> {
    let is_plain = text.chars().all(|c| c.is_ascii_digit()) && !text.starts_with('0');
    text.parse().ok().filter(|_| is_plain).ok_or(BadHost::Port)
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => name.fmt(f),
            Self::Address(IpAddr::V4(address)) => address.fmt(f),
            Self::Address(IpAddr::V6(address)) => write!(f, "[{address}]"),
        }
    }
}
