//! Reassembles TLS records until the first handshake message is complete.

use super::{ClientHelloError, MAX_HELLO_BYTES, MAX_MESSAGE_BYTES, Read, message};

/// The record type of handshakes.
const HANDSHAKE: u8 = 22;
/// The handshake type `client_hello`.
const CLIENT_HELLO: u8 = 1;
/// The most bytes in one record.
const MAX_RECORD_BYTES: usize = 1 << 14;
/// The bytes before a message: its type and length.
const MESSAGE_HEAD: usize = 4;

/// Takes the bytes of a tunnel as they come. The result does not depend on how they are split.
#[derive(Clone, Debug, Default)]
pub struct Reader {
    /// The head of the record that begins, as far as it came.
    head: Vec<u8>,
    /// How many bytes of the record are to come.
    left: usize,
    message: Vec<u8>,
    /// How many bytes came.
    taken: usize,
    over: Option<Read>,
}

impl Reader {
    /// Takes more bytes. A result other than [`Read::More`] is final.
    pub fn push(&mut self, bytes: &[u8]) -> Read {
        let mut rest = bytes;
        while self.over.is_none() && !rest.is_empty() {
            let wanted = if self.left == 0 { 1 } else { self.left.min(self.wanted()) };
            let now = wanted.min(rest.len()).min(MAX_HELLO_BYTES - self.taken);
            if now == 0 {
                return self.end(Read::Refused(ClientHelloError::TooLarge));
            }
            let (part, more) = rest.split_at(now);
            rest = more;
            self.taken += now;
            if let Err(bad) = if self.left == 0 { self.record(part) } else { self.part(part) } {
                return self.end(Read::Refused(bad));
            }
        }
        self.over.clone().unwrap_or(Read::More)
    }

    fn end(&mut self, read: Read) -> Read {
        self.over = Some(read.clone());
        // Nothing of it is needed any more.
        self.message = Vec::new();
        read
    }

    /// How many bytes of the message are to come, as far as that is known.
    fn wanted(&self) -> usize {
        self.length().unwrap_or(MESSAGE_HEAD).saturating_sub(self.message.len())
    }

    /// How many bytes the message has with its head, once that came.
    fn length(&self) -> Option<usize> {
        match self.message.first_chunk() {
            Some(&[_, a, b, c]) => {
                let length = u32::from_be_bytes([0, a, b, c]);
                Some(MESSAGE_HEAD + usize::try_from(length).unwrap_or(usize::MAX - MESSAGE_HEAD))
            }
            None => None,
        }
    }

    /// Takes one byte of a record's head.
    fn record(&mut self, byte: &[u8]) -> Result<(), ClientHelloError> {
        self.head.extend_from_slice(byte);
        match *self.head.as_slice() {
            [HANDSHAKE] | [HANDSHAKE, 3] | [HANDSHAKE, 3, 1..=3] | [HANDSHAKE, 3, 1..=3, _] => Ok(()),
            [HANDSHAKE, 3, 1..=3, high, low] => {
                self.left = usize::from(u16::from_be_bytes([high, low]));
                self.head.clear();
                match self.left {
                    0 => Err(ClientHelloError::Malformed("a record is empty")),
                    1..=MAX_RECORD_BYTES => Ok(()),
                    _ => Err(ClientHelloError::Malformed("a record is too long")),
                }
            }
            _ if self.message.is_empty() => Err(ClientHelloError::NotTls),
            _ => Err(ClientHelloError::Malformed("a record is of another kind before the hello is whole")),
        }
    }

    /// Takes a part of the message.
    fn part(&mut self, part: &[u8]) -> Result<(), ClientHelloError> {
        self.message.extend_from_slice(part);
        self.left -= part.len();
        if self.message.first().is_some_and(|kind| *kind != CLIENT_HELLO) {
            return Err(ClientHelloError::NotTls);
        }
        let Some(length) = self.length() else { return Ok(()) };
        if length > MAX_MESSAGE_BYTES {
            return Err(ClientHelloError::TooLarge);
        }
        if self.message.len() < length {
            return Ok(());
        }
        if self.left > 0 {
            return Err(ClientHelloError::Malformed("something follows it in the same record"));
        }
        let hello = message::parse(self.message.get(MESSAGE_HEAD..).unwrap_or_default())?;
        self.end(Read::ClientHello(hello));
        Ok(())
    }
}
