//! The protocol between herma and the keeper inside a container: an order over stdin, and messages in stdout, told
//! apart from the command's own output by a token that the command never sees.

use std::ffi::{OsStr, OsString};
use std::io::{self, Read};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};

use crate::limits::LimitName;

/// Starts the command.
pub(super) const GO: u8 = b'G';
/// Sends SIGTERM to every process inside.
pub(super) const TERMINATE: u8 = b'T';
/// Precedes a chunk of the command's stdin: its length in four bytes, then the chunk. An empty chunk is the end.
pub(super) const INPUT: u8 = b'I';
/// The largest chunk.
pub(super) const MAX_INPUT_CHUNK_BYTES: usize = 64 << 10;

/// The largest part of an order.
const MAX_ORDER_PART_BYTES: u64 = 64 << 20;
/// A message is one atomic write, so that no output of the command gets into it: a pipe takes this many bytes
/// atomically.
const MAX_MESSAGE_BYTES: usize = 4096;

/// The command for the keeper. It is not part of the container's specification: a variable may hold a run's token,
/// and users of Docker can read the specification.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct KeeperOrder {
    /// The prefix of every message.
    pub(super) token: String,
    /// The launcher and the command.
    pub(super) argv: Vec<OsString>,
    /// The environment of the command.
    pub(super) env: Vec<(OsString, OsString)>,
    /// The command's stdin.
    pub(super) stdin: StdinSource,
}

/// The stdin of a command in a container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum StdinSource {
    /// Nothing.
    Nothing,
    /// These bytes.
    Text(Vec<u8>),
    /// Chunks that follow the start signal.
    Chunks,
}

/// A message of the keeper.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum KeeperMessage {
    /// It has its order and waits for the start signal.
    Ready,
    /// The command could not be started.
    Failed(String),
    /// A process inside exceeded this limit.
    Met(LimitName),
    /// The command has exited with this code.
    Ended(i32),
}

/// Separates the messages from the output.
pub(super) struct MessageScanner {
    mark: Vec<u8>,
    held: Vec<u8>,
}

impl KeeperOrder {
    pub(super) fn bytes(&self) -> Vec<u8> {
        let words = |words: &mut dyn Iterator<Item = &OsStr>| -> Vec<u8> {
            words.flat_map(|word| word.as_bytes().iter().copied().chain([0])).collect()
        };
        let argv = words(&mut self.argv.iter().map(OsString::as_os_str));
        let env = words(&mut self.env.iter().flat_map(|(name, value)| [name.as_os_str(), value.as_os_str()]));
        let (kind, stdin) = match &self.stdin {
            StdinSource::Nothing => (b"0", &[][..]),
            StdinSource::Text(text) => (b"1", text.as_slice()),
            StdinSource::Chunks => (b"2", &[][..]),
        };
        let mut bytes = Vec::new();
        for part in [self.token.as_bytes(), &argv, &env, kind, stdin] {
            bytes.extend((part.len() as u64).to_be_bytes());
            bytes.extend(part);
        }
        bytes
    }

    pub(super) fn read(from: &mut impl Read) -> io::Result<Self> {
        let mut part = || -> io::Result<Vec<u8>> {
            let mut length = [0; 8];
            from.read_exact(&mut length)?;
            let length = u64::from_be_bytes(length);
            if length > MAX_ORDER_PART_BYTES {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "a part of the order is too long"));
            }
            let mut bytes = Vec::new();
            if from.take(length).read_to_end(&mut bytes)? as u64 != length {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            Ok(bytes)
        };
        let (token, argv, env, kind, stdin) = (part()?, part()?, part()?, part()?, part()?);
        let token = String::from_utf8(token)
            .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "the token is no text"))?;
        let mut words = parse(&env).into_iter();
        let mut pairs = Vec::new();
        while let (Some(name), Some(value)) = (words.next(), words.next()) {
            pairs.push((name, value));
        }
        let stdin = match kind.as_slice() {
            b"1" => StdinSource::Text(stdin),
            b"2" => StdinSource::Chunks,
            _ => StdinSource::Nothing,
        };
        Ok(Self { token, argv: parse(&argv), env: pairs, stdin })
    }
}

fn parse(words: &[u8]) -> Vec<OsString> {
    let Some(words) = words.strip_suffix(&[0]) else { return Vec::new() };
    words.split(|byte| *byte == 0).map(|word| OsString::from_vec(word.to_vec())).collect()
}

impl KeeperMessage {
    /// The message as one write.
    pub(super) fn bytes(&self, token: &str) -> Vec<u8> {
        let text = match self {
            Self::Ready => "ready".to_owned(),
            Self::Failed(why) => format!("failed {}", why.replace(['\n', '\0'], " ")),
            Self::Met(limit) => format!("met {limit}"),
            Self::Ended(code) => format!("ended {code}"),
        };
        let mut bytes = format!("\0{token} {text}").into_bytes();
        bytes.truncate(MAX_MESSAGE_BYTES - 1);
        bytes.push(b'\n');
        bytes
    }

    fn parse(text: &str) -> Option<Self> {
        match text.split_once(' ') {
            None => (text == "ready").then_some(Self::Ready),
            Some(("failed", why)) => Some(Self::Failed(why.to_owned())),
            Some(("met", name)) => {
                let mut known = [LimitName::Memory, LimitName::Processes].into_iter();
                known.find(|limit| limit.as_str() == name).map(Self::Met)
            }
            Some(("ended", code)) => code.parse().ok().map(Self::Ended),
            Some(_) => None,
        }
    }
}

impl MessageScanner {
    pub(super) fn new(token: &str) -> Self {
        Self { mark: format!("\0{token} ").into_bytes(), held: Vec::new() }
    }

    /// The output and the messages in these bytes. Only a possible start of a message is held back.
    pub(super) fn push(&mut self, bytes: &[u8]) -> (Vec<u8>, Vec<KeeperMessage>) {
        self.held.extend_from_slice(bytes);
        let all = std::mem::take(&mut self.held);
        let (mut output, mut messages, mut rest) = (Vec::with_capacity(all.len()), Vec::new(), &all[..]);
        while let Some(at) = rest.iter().position(|byte| *byte == 0) {
            let (before, candidate) = rest.split_at(at);
            output.extend_from_slice(before);
            let end = candidate.iter().position(|byte| *byte == b'\n');
            match (candidate.strip_prefix(&self.mark[..]), end) {
                (Some(text), Some(end)) => {
                    let text = text.get(..end - self.mark.len()).unwrap_or_default();
                    messages.extend(KeeperMessage::parse(&String::from_utf8_lossy(text)));
                    rest = candidate.get(end + 1..).unwrap_or_default();
                }
                (Some(_), None) if candidate.len() < MAX_MESSAGE_BYTES => {
                    self.held = candidate.to_vec();
                    return (output, messages);
                }
                (None, _) if self.mark.starts_with(candidate) => {
                    self.held = candidate.to_vec();
                    return (output, messages);
                }
                _ => {
                    output.push(0);
                    rest = candidate.get(1..).unwrap_or_default();
                }
            }
        }
        output.extend_from_slice(rest);
        (output, messages)
    }

    /// The bytes that were held back and are no message.
    pub(super) fn rest(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.held)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_is_read_as_it_was_written() {
        let order = KeeperOrder {
            token: "t".to_owned(),
            argv: vec!["sh".into(), String::new().into(), OsString::from_vec(vec![0xff, b'x'])],
            env: vec![("A".into(), String::new().into()), ("B".into(), "1=2".into())],
            stdin: StdinSource::Text(b"\0\n".to_vec()),
        };
        assert_eq!(KeeperOrder::read(&mut &order.bytes()[..]).unwrap(), order);
        for stdin in [StdinSource::Nothing, StdinSource::Chunks] {
            let other = KeeperOrder { stdin, env: Vec::new(), ..order.clone() };
            assert_eq!(KeeperOrder::read(&mut &other.bytes()[..]).unwrap(), other);
        }
        let bytes = order.bytes();
        for cut in 0..bytes.len() {
            assert!(KeeperOrder::read(&mut &bytes[..cut]).is_err(), "cut at {cut}");
        }
        assert!(KeeperOrder::read(&mut &[0xff; 64][..]).is_err());
    }

    #[test]
    fn messages_are_found_wherever_the_output_is_cut() {
        let mut all = b"one\0two".to_vec();
        all.extend(KeeperMessage::Ready.bytes("k1"));
        all.extend(b"\0k2 ready\n\0k1");
        all.extend(KeeperMessage::Failed("a\nb".to_owned()).bytes("k1"));
        all.extend(KeeperMessage::Met(LimitName::Memory).bytes("k1"));
        all.extend(KeeperMessage::Ended(137).bytes("k1"));
        all.extend(b"end\0");
        for size in 1..all.len() {
            let (mut scanner, mut output, mut messages) = (MessageScanner::new("k1"), Vec::new(), Vec::new());
            for chunk in all.chunks(size) {
                let (bytes, found) = scanner.push(chunk);
                output.extend(bytes);
                messages.extend(found);
            }
            output.extend(scanner.rest());
            assert_eq!(output, b"one\0two\0k2 ready\n\0k1end\0", "in chunks of {size}");
            let (failed, met) =
                (KeeperMessage::Failed("a b".to_owned()), KeeperMessage::Met(LimitName::Memory));
            assert_eq!(messages, [KeeperMessage::Ready, failed, met, KeeperMessage::Ended(137)]);
        }
    }

    #[test]
    fn a_message_is_one_write_and_endless_output_is_not_held_back() {
        assert_eq!(KeeperMessage::Failed("x".repeat(10_000)).bytes("k").len(), MAX_MESSAGE_BYTES);
        let mut scanner = MessageScanner::new("k");
        let mut endless = b"\0k ".to_vec();
        endless.extend(vec![b'x'; MAX_MESSAGE_BYTES]);
        assert_eq!(scanner.push(&endless).0.len(), endless.len());
    }
}
