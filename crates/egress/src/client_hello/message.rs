//! The fields of a `ClientHello`. Every length must fit exactly.

use super::{ClientHello, ClientHelloError};
use crate::host::Name;

/// The extension `server_name`.
const SERVER_NAME: u16 = 0;
/// Encrypted Client Hello, with the numbers of its drafts, and what was before it.
const ENCRYPTED: &[u16] = &[0xfe08, 0xfe09, 0xfe0a, 0xfe0b, 0xfe0c, 0xfe0d, 0xff02, 0xff03, 0xffce];
/// The kind of name that there is.
const HOST_NAME: u8 = 0;

/// Bytes that are taken from the front.
struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn byte(&mut self) -> Option<u8> {
        self.take(1)?.first().copied()
    }

    fn number(&mut self) -> Option<u16> {
        self.take(2)?.first_chunk().map(|bytes| u16::from_be_bytes(*bytes))
    }

    /// A field with its length in one byte before it.
    fn short(&mut self) -> Option<&'a [u8]> {
        let length = self.byte()?;
        self.take(usize::from(length))
    }

    /// A field with its length in two bytes before it.
    fn long(&mut self) -> Option<&'a [u8]> {
        let length = self.number()?;
        self.take(usize::from(length))
    }
}

/// Reads the message without its head.
pub(super) fn parse(message: &[u8]) -> Result<ClientHello, ClientHelloError> {
    let mut bytes = Bytes(message);
    let extensions =
        before_extensions(&mut bytes).ok_or(ClientHelloError::Malformed("its fields do not fit"))?;
    if !bytes.0.is_empty() {
        return Err(ClientHelloError::Malformed("something follows the extensions"));
    }
    let mut seen = Vec::new();
    let mut name = None;
    let mut rest = Bytes(extensions);
    while !rest.0.is_empty() {
        let cut = ClientHelloError::Malformed("an extension ends too early");
        let kind = rest.number().ok_or(cut)?;
        let content = rest.long().ok_or(cut)?;
        if ENCRYPTED.contains(&kind) {
            return Err(ClientHelloError::Encrypted);
        }
        if kind == SERVER_NAME {
            if name.is_some() {
                return Err(ClientHelloError::TwoNames);
            }
            name = Some(server_name(content)?);
        }
        seen.push(kind);
    }
    seen.sort_unstable();
    if !seen.is_sorted_by(|a, b| a < b) {
        return Err(ClientHelloError::Malformed("an extension is there twice"));
    }
    Ok(ClientHello { name })
}

/// Reads up to the extensions, and gives them. An old hello has none.
fn before_extensions<'a>(bytes: &mut Bytes<'a>) -> Option<&'a [u8]> {
    let version = bytes.number()?;
    bytes.take(32)?;
    let session = bytes.short()?;
    let suites = bytes.long()?;
    let compressions = bytes.short()?;
    let fits = version >> 8 == 3
        && session.len() <= 32
        && suites.len() >= 2
        && suites.len().is_multiple_of(2)
        && !compressions.is_empty();
    match (fits, bytes.0.is_empty()) {
        (false, _) => None,
        (true, true) => Some(&[]),
        (true, false) => bytes.long(),
    }
}

/// The one name in the list of names.
fn server_name(content: &[u8]) -> Result<Name, ClientHelloError> {
    let malformed = ClientHelloError::Malformed("the list of names does not fit");
    let mut content = Bytes(content);
    let mut list = Bytes(content.long().ok_or(malformed)?);
    if !content.0.is_empty() {
        return Err(malformed);
    }
    let kind = list.byte().ok_or(malformed)?;
    let name = list.long().ok_or(malformed)?;
    if !list.0.is_empty() {
        return Err(ClientHelloError::TwoNames);
    }
    if kind != HOST_NAME {
        return Err(ClientHelloError::BadName);
    }
    let name = std::str::from_utf8(name).map_err(|_| ClientHelloError::BadName)?;
    Name::parse(name).map_err(|_| ClientHelloError::BadName)
}
