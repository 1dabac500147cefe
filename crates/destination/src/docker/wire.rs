//! What herma and the keeper inside a container say to each other: an order over standard input, and a few messages
//! in standard output, told apart from the command's own by a token that the command never sees.

use std::ffi::{OsStr, OsString};
use std::io::{self, Read};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};

use crate::limits::LimitName;

/// The byte that lets the keeper start the command.
pub(super) const GO: u8 = b'G';
/// The byte that has it send TERM to everything inside.
pub(super) const TERMINATE: u8 = b'T';
/// The byte before a piece of what the command reads: its length in four bytes, and the piece. An empty one is the end.
pub(super) const INPUT: u8 = b'I';
/// The longest of these pieces.
pub(super) const LONGEST_INPUT: usize = 64 << 10;

/// No part of an order is longer than this.
const LONGEST: u64 = 64 << 20;
/// A message is written at once, so that no word of the command gets into it: a pipe takes this much in one piece.
const ONE_PIECE: usize = 4096;

/// What the keeper is to start. Not in the container's own description: a variable may hold a run's token, and who may
/// ask Docker may read that description.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Order {
    /// What every message begins with.
    pub(super) token: String,
    /// The launcher and the command.
    pub(super) argv: Vec<OsString>,
    /// Every variable of the command.
    pub(super) env: Vec<(OsString, OsString)>,
    /// What the command reads.
    pub(super) stdin: Input,
}

/// What a command in a container reads on its standard input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Input {
    /// Nothing.
    Nothing,
    /// This.
    Text(Vec<u8>),
    /// What comes after the word to go, in pieces.
    Pieces,
}

/// What the keeper says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Message {
    /// It has its order and waits for the word to go.
    Ready,
    /// The command could not be started.
    Failed(String),
    /// Something inside met this limit.
    Met(LimitName),
    /// The command has ended with this code.
    Ended(i32),
}

/// Takes the messages out of the output.
pub(super) struct Scanner {
    mark: Vec<u8>,
    held: Vec<u8>,
}

impl Order {
    pub(super) fn bytes(&self) -> Vec<u8> {
        let words = |words: &mut dyn Iterator<Item = &OsStr>| -> Vec<u8> {
            words.flat_map(|word| word.as_bytes().iter().copied().chain([0])).collect()
        };
        let argv = words(&mut self.argv.iter().map(OsString::as_os_str));
        let env = words(&mut self.env.iter().flat_map(|(name, value)| [name.as_os_str(), value.as_os_str()]));
        let (kind, stdin) = match &self.stdin {
            Input::Nothing => (b"0", &[][..]),
            Input::Text(text) => (b"1", text.as_slice()),
            Input::Pieces => (b"2", &[][..]),
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
            if length > LONGEST {
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
            b"1" => Input::Text(stdin),
            b"2" => Input::Pieces,
            _ => Input::Nothing,
        };
        Ok(Self { token, argv: parse(&argv), env: pairs, stdin })
    }
}

fn parse(words: &[u8]) -> Vec<OsString> {
    let Some(words) = words.strip_suffix(&[0]) else { return Vec::new() };
    words.split(|byte| *byte == 0).map(|word| OsString::from_vec(word.to_vec())).collect()
}

impl Message {
    /// Itself in one piece.
    pub(super) fn bytes(&self, token: &str) -> Vec<u8> {
        let text = match self {
            Self::Ready => "ready".to_owned(),
            Self::Failed(why) => format!("failed {}", why.replace(['\n', '\0'], " ")),
            Self::Met(limit) => format!("met {limit}"),
            Self::Ended(code) => format!("ended {code}"),
        };
        let mut bytes = format!("\0{token} {text}").into_bytes();
        bytes.truncate(ONE_PIECE - 1);
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

impl Scanner {
    pub(super) fn new(token: &str) -> Self {
        Self { mark: format!("\0{token} ").into_bytes(), held: Vec::new() }
    }

    /// The output and the messages in what has come. Only what may be the beginning of a message is held back.
    pub(super) fn push(&mut self, bytes: &[u8]) -> (Vec<u8>, Vec<Message>) {
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
                    messages.extend(Message::parse(&String::from_utf8_lossy(text)));
                    rest = candidate.get(end + 1..).unwrap_or_default();
                }
                (Some(_), None) if candidate.len() < ONE_PIECE => {
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

    /// What was held back and is no message after all.
    pub(super) fn rest(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.held)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_is_read_as_it_was_written() {
        let order = Order {
            token: "t".to_owned(),
            argv: vec!["sh".into(), String::new().into(), OsString::from_vec(vec![0xff, b'x'])],
            env: vec![("A".into(), String::new().into()), ("B".into(), "1=2".into())],
            stdin: Input::Text(b"\0\n".to_vec()),
        };
        assert_eq!(Order::read(&mut &order.bytes()[..]).unwrap(), order);
        for stdin in [Input::Nothing, Input::Pieces] {
            let other = Order { stdin, env: Vec::new(), ..order.clone() };
            assert_eq!(Order::read(&mut &other.bytes()[..]).unwrap(), other);
        }
        let bytes = order.bytes();
        for cut in 0..bytes.len() {
            assert!(Order::read(&mut &bytes[..cut]).is_err(), "cut at {cut}");
        }
        assert!(Order::read(&mut &[0xff; 64][..]).is_err());
    }

    #[test]
    fn messages_are_found_wherever_the_output_is_cut() {
        let mut all = b"one\0two".to_vec();
        all.extend(Message::Ready.bytes("k1"));
        all.extend(b"\0k2 ready\n\0k1");
        all.extend(Message::Failed("a\nb".to_owned()).bytes("k1"));
        all.extend(Message::Met(LimitName::Memory).bytes("k1"));
        all.extend(Message::Ended(137).bytes("k1"));
        all.extend(b"end\0");
        for size in 1..all.len() {
            let (mut scanner, mut output, mut messages) = (Scanner::new("k1"), Vec::new(), Vec::new());
            for chunk in all.chunks(size) {
                let (bytes, found) = scanner.push(chunk);
                output.extend(bytes);
                messages.extend(found);
            }
            output.extend(scanner.rest());
            assert_eq!(output, b"one\0two\0k2 ready\n\0k1end\0", "in pieces of {size}");
            let (failed, met) = (Message::Failed("a b".to_owned()), Message::Met(LimitName::Memory));
            assert_eq!(messages, [Message::Ready, failed, met, Message::Ended(137)]);
        }
    }

    #[test]
    fn a_message_is_one_piece_and_output_without_an_end_is_not_held_for_ever() {
        assert_eq!(Message::Failed("x".repeat(10_000)).bytes("k").len(), ONE_PIECE);
        let mut scanner = Scanner::new("k");
        let mut endless = b"\0k ".to_vec();
        endless.extend(vec![b'x'; ONE_PIECE]);
        assert_eq!(scanner.push(&endless).0.len(), endless.len());
    }
}
