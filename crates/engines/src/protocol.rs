//! The output protocol of `fake` and of every engine that wants to speak it: one JSON object per line on standard
//! output, whose first key is `type`.
//!
//! | line | meaning |
//! | --- | --- |
//! | `{"type":"hello","engine":"fake","version":"0.1.0"}` | the agent has started |
//! | `{"type":"message","text":"..."}` | a text for people |
//! | `{"type":"plan","items":["...","..."]}` | what it wants to do, in order |
//! | `{"type":"tool","name":"shell","command":"sh test.sh"}` | it calls a tool |
//! | `{"type":"result","status":"completed"}` | how its work went: `completed`, `failed` or `rejected` |
//!
//! A result can come in an envelope: then it also has `"contract_digest":"sha256:..."`, the contract that it answers.
//! Programs that are not part of herma must send it, and a result for another contract counts as malformed.
//!
//! A line that does not begin with one of these five types is not protocol: it is kept and counted, and means nothing.
//! A line that does, and is not of that form, is malformed.

use std::io::{self, Write};

use herma_core::Digest;
use herma_core::engine::EngineResult;
use serde::{Deserialize, Serialize};

use crate::engine::{OutputReader, Said};

/// One line of the protocol.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum Line {
    /// The agent has started.
    Hello {
        /// The engine's name.
        engine: String,
        /// The agent's version.
        version: String,
    },
    /// A text for people.
    Message {
        /// The text.
        text: String,
    },
    /// What it wants to do, in order.
    Plan {
        /// One step each.
        items: Vec<String>,
    },
    /// It calls a tool.
    Tool {
        /// Which one.
        name: String,
        /// With what, as one would type it.
        command: String,
    },
    /// How its work went.
    Result {
        /// In its own words.
        status: EngineResult,
        /// The contract that it answers.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        contract_digest: Option<Digest>,
    },
}

impl Line {
    /// Writes the line in one piece, so that what a daemon prints cannot come in between.
    pub fn write_to(&self, output: &mut impl Write) -> io::Result<()> {
        let mut bytes = serde_json::to_vec(self)?;
        bytes.push(b'\n');
        output.write_all(&bytes)
    }
}

impl From<Line> for Said {
    fn from(line: Line) -> Self {
        match line {
            Line::Hello { .. } => Self::Hello,
            Line::Message { text } => Self::Message(text),
            Line::Plan { items } => Self::Plan(items),
            Line::Tool { name, command } => Self::Tool { name, command },
            Line::Result { status, .. } => Self::Result(status),
        }
    }
}

/// The values of `type`, as the lines have them.
const TYPES: [&[u8]; 5] = [b"hello", b"message", b"plan", b"tool", b"result"];

/// Reads lines of the protocol, with an envelope or without.
#[derive(Clone, Copy, Debug, Default)]
pub struct ProtocolReader;

impl OutputReader for ProtocolReader {
    fn line(&mut self, line: &[u8]) -> Option<Said> {
        Some(read(line)?.map_or_else(Said::Malformed, Said::from))
    }
}

/// Reads lines of the protocol where a result must come in an envelope.
#[derive(Clone, Copy, Debug)]
pub struct EnvelopeReader {
    /// The contract that the run is about.
    pub contract: Digest,
}

impl OutputReader for EnvelopeReader {
    fn line(&mut self, line: &[u8]) -> Option<Said> {
        Some(match read(line)? {
            Ok(Line::Result { contract_digest, .. }) if contract_digest != Some(self.contract) => {
                let named = contract_digest.map_or_else(|| "none".to_owned(), |digest| digest.to_string());
                Said::Malformed(format!(
                    "the result must name the contract {}; it names {named}",
                    self.contract
                ))
            }
            Ok(line) => line.into(),
            Err(why) => Said::Malformed(why),
        })
    }
}

/// The line of the protocol, or what is wrong with it; `None` if it was not meant as protocol.
fn read(line: &[u8]) -> Option<Result<Line, String>> {
    let line = line.trim_ascii();
    if !is_meant_as_protocol(line) {
        return None;
    }
    // An agent that shows what it read from a file may well pass on bytes that are no UTF-8.
    let text = String::from_utf8_lossy(line);
    Some(serde_json::from_str(&text).map_err(|error| error.to_string().chars().take(200).collect()))
}

/// Whether the line begins with `{"type":"` and one of the types. Tools print JSON too, so no other object counts.
fn is_meant_as_protocol(line: &[u8]) -> bool {
    let Some(value) = [&b"{"[..], b"\"type\"", b":", b"\""]
        .iter()
        .try_fold(line, |rest, token| rest.trim_ascii_start().strip_prefix(*token))
    else {
        return false;
    };
    TYPES.iter().any(|known| value.strip_prefix(*known).is_some_and(|rest| rest.starts_with(b"\"")))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{EnvelopeReader, Line, OutputReader as _, ProtocolReader, Said};
    use herma_core::Digest;
    use herma_core::engine::EngineResult;

    fn read(line: impl AsRef<[u8]>) -> Option<Said> {
        ProtocolReader.line(line.as_ref())
    }

    #[test]
    fn every_line_of_the_protocol_is_understood() {
        let hello = r#"{"type":"hello","engine":"fake","version":"1"}"#;
        let tool = r#"  {"type": "tool", "name": "shell", "command": "sh test.sh"}  "#;
        assert_eq!(read(hello), Some(Said::Hello));
        assert_eq!(read(r#"{"type":"message","text":"hi"}"#), Some(Said::Message("hi".into())));
        assert_eq!(read(r#"{"type":"plan","items":["a"]}"#), Some(Said::Plan(vec!["a".into()])));
        assert_eq!(read(tool), Some(Said::Tool { name: "shell".into(), command: "sh test.sh".into() }));
        for (word, result) in [
            ("completed", EngineResult::Completed),
            ("failed", EngineResult::Failed),
            ("rejected", EngineResult::Rejected),
        ] {
            let line = format!(r#"{{"type":"result","status":"{word}"}}{}"#, "\r");
            assert_eq!(read(line), Some(Said::Result(result)));
        }
    }

    #[test]
    fn what_is_not_protocol_means_nothing() {
        for line in [
            "",
            "=== AGENT v9.9 ===",
            "\u{1b}[32mdone\u{1b}[0m",
            "{",
            "[]",
            r#"{"type":"module"}"#,
            r#"{"name":"x","type":"result"}"#,
            r#"{"type":"results","status":"completed"}"#,
            r#"said {"type":"result","status":"completed"}"#,
        ] {
            assert_eq!(read(line), None, "{line}");
        }
        assert_eq!(read([0xff, 0xfe, 0x00]), None);
    }

    #[test]
    fn what_was_meant_as_protocol_and_is_not_is_malformed() {
        for line in [
            r#"{"type":"result","status":"#,
            r#"{"type":"result"}"#,
            r#"{"type":"result","status":"COMPLETED"}"#,
            r#"{"type":"result","status":"completed","verdict":"pass"}"#,
            r#"{"type":"result","status":"completed"}{"type":"result","status":"completed"}"#,
            r#"{"type":"tool","name":"shell"}"#,
            r#"{"type":"plan","items":"a"}"#,
            r#"{"type":"message","text":"a","text":"b"}"#,
        ] {
            assert!(matches!(read(line), Some(Said::Malformed(_))), "{line}");
        }
    }

    #[test]
    fn an_envelope_must_name_this_contract_and_no_other() {
        let (ours, other) = (Digest::of(b"ours"), Digest::of(b"other"));
        let mut reader = EnvelopeReader { contract: ours };
        let mut result = |contract_digest| {
            let line = Line::Result { status: EngineResult::Completed, contract_digest };
            let mut written = Vec::new();
            line.write_to(&mut written).unwrap();
            reader.line(&written).unwrap()
        };
        assert_eq!(result(Some(ours)), Said::Result(EngineResult::Completed));
        for wrong in [None, Some(other)] {
            assert!(matches!(result(wrong), Said::Malformed(_)), "{wrong:?}");
        }
        let bad = r#"{"type":"result","status":"completed","contract_digest":"sha256:12"}"#;
        assert!(matches!(reader.line(bad.as_bytes()), Some(Said::Malformed(_))));
        assert_eq!(reader.line(br#"{"type":"message","text":"hi"}"#), Some(Said::Message("hi".into())));
        assert_eq!(reader.line(b"=== AGENT v9.9 ==="), None);
    }

    #[test]
    fn bytes_that_are_no_text_do_not_hide_a_message() {
        let said = read(b"{\"type\":\"message\",\"text\":\"caf\xe9\"}");
        assert_eq!(said, Some(Said::Message("caf\u{fffd}".into())));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_harm(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
            read(&bytes);
        }

        #[test]
        fn a_damaged_line_is_nothing_itself_or_malformed_and_never_another_result(
            at in any::<prop::sample::Index>(),
            byte in any::<u8>(),
            cut in any::<bool>(),
        ) {
            let whole = br#"{"type":"result","status":"completed"}"#;
            let mut line = whole.to_vec();
            let at = at.index(line.len());
            if cut { line.truncate(at) } else { line[at] = byte }
            match read(&line) {
                None | Some(Said::Malformed(_) | Said::Result(EngineResult::Completed)) => {}
                other => prop_assert!(false, "{:?} was read as {other:?}", String::from_utf8_lossy(&line)),
            }
        }

        #[test]
        fn what_is_written_is_what_is_read(text in ".*", items in prop::collection::vec(".*", 0..4)) {
            for line in [Line::Message { text }, Line::Plan { items }] {
                let written = serde_json::to_vec(&line).unwrap();
                prop_assert!(!written.contains(&b'\n'));
                prop_assert_eq!(read(written), Some(line.into()));
            }
        }
    }
}
