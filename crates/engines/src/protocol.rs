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

use crate::agent_event::AgentEvent;
use crate::engine::OutputReader;

/// One line of the protocol.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum ProtocolLine {
    /// The agent has started.
    Hello {
        /// The engine's name.
        engine: String,
        /// The agent's version.
        version: String,
    },
    /// A message for people.
    Message {
        /// The text.
        text: String,
    },
    /// Its plan, in order.
    Plan {
        /// One step each.
        items: Vec<String>,
    },
    /// It calls a tool.
    Tool {
        /// The tool.
        name: String,
        /// The arguments, as one would type them.
        command: String,
    },
    /// How its work went.
    Result {
        /// Its own status.
        status: EngineResult,
        /// The contract that it answers.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        contract_digest: Option<Digest>,
    },
}

impl ProtocolLine {
    /// Writes the line at once, so that a daemon's output cannot get into it.
    pub fn write_to(&self, output: &mut impl Write) -> io::Result<()> {
        let mut bytes = serde_json::to_vec(self)?;
        bytes.push(b'\n');
        output.write_all(&bytes)
    }
}

impl From<ProtocolLine> for AgentEvent {
    fn from(line: ProtocolLine) -> Self {
        match line {
            ProtocolLine::Hello { .. } => Self::Hello,
            ProtocolLine::Message { text } => Self::Message(text),
            ProtocolLine::Plan { items } => Self::Plan(items),
            ProtocolLine::Tool { name, command } => Self::Tool { name, command },
            ProtocolLine::Result { status, .. } => Self::Result(status),
        }
    }
}

/// The values of `type`.
const TYPES: [&[u8]; 5] = [b"hello", b"message", b"plan", b"tool", b"result"];

/// Parses the protocol, with or without an envelope.
#[derive(Clone, Copy, Debug, Default)]
pub struct ProtocolReader;

impl OutputReader for ProtocolReader {
    fn line(&mut self, line: &[u8]) -> Option<AgentEvent> {
        Some(read(line)?.map_or_else(AgentEvent::Malformed, AgentEvent::from))
    }
}

/// Parses the protocol where a result requires an envelope.
#[derive(Clone, Copy, Debug)]
pub struct EnvelopeReader {
    /// The contract that the run is about.
    pub contract: Digest,
}

impl OutputReader for EnvelopeReader {
    fn line(&mut self, line: &[u8]) -> Option<AgentEvent> {
        Some(match read(line)? {
            Ok(ProtocolLine::Result { contract_digest, .. }) if contract_digest != Some(self.contract) => {
                let named = contract_digest.map_or_else(|| "none".to_owned(), |digest| digest.to_string());
                AgentEvent::Malformed(format!(
                    "the result must name the contract {}; it names {named}",
                    self.contract
                ))
            }
            Ok(line) => line.into(),
            Err(why) => AgentEvent::Malformed(why),
        })
    }
}

/// The line, or its problem; `None` if it is not meant as protocol.
fn read(line: &[u8]) -> Option<Result<ProtocolLine, String>> {
    let line = line.trim_ascii();
    if !is_meant_as_protocol(line) {
        return None;
    }
    // An agent that prints a file may pass on invalid UTF-8.
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

    use super::{AgentEvent, EnvelopeReader, OutputReader as _, ProtocolLine, ProtocolReader};
    use herma_core::Digest;
    use herma_core::engine::EngineResult;

    fn read(line: impl AsRef<[u8]>) -> Option<AgentEvent> {
        ProtocolReader.line(line.as_ref())
    }

    #[test]
    fn every_line_of_the_protocol_is_understood() {
        let hello = r#"{"type":"hello","engine":"fake","version":"1"}"#;
        let tool = r#"  {"type": "tool", "name": "shell", "command": "sh test.sh"}  "#;
        assert_eq!(read(hello), Some(AgentEvent::Hello));
        assert_eq!(read(r#"{"type":"message","text":"hi"}"#), Some(AgentEvent::Message("hi".into())));
        assert_eq!(read(r#"{"type":"plan","items":["a"]}"#), Some(AgentEvent::Plan(vec!["a".into()])));
        assert_eq!(read(tool), Some(AgentEvent::Tool { name: "shell".into(), command: "sh test.sh".into() }));
        for (word, result) in [
            ("completed", EngineResult::Completed),
            ("failed", EngineResult::Failed),
            ("rejected", EngineResult::Rejected),
        ] {
            let line = format!(r#"{{"type":"result","status":"{word}"}}{}"#, "\r");
            assert_eq!(read(line), Some(AgentEvent::Result(result)));
        }
    }

    #[test]
    fn other_output_is_no_protocol() {
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
    fn broken_protocol_lines_are_malformed() {
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
            assert!(matches!(read(line), Some(AgentEvent::Malformed(_))), "{line}");
        }
    }

    #[test]
    fn an_envelope_must_name_this_contract_and_no_other() {
        let (ours, other) = (Digest::of(b"ours"), Digest::of(b"other"));
        let mut reader = EnvelopeReader { contract: ours };
        let mut result = |contract_digest| {
            let line = ProtocolLine::Result { status: EngineResult::Completed, contract_digest };
            let mut written = Vec::new();
            line.write_to(&mut written).unwrap();
            reader.line(&written).unwrap()
        };
        assert_eq!(result(Some(ours)), AgentEvent::Result(EngineResult::Completed));
        for wrong in [None, Some(other)] {
            assert!(matches!(result(wrong), AgentEvent::Malformed(_)), "{wrong:?}");
        }
        let bad = r#"{"type":"result","status":"completed","contract_digest":"sha256:12"}"#;
        assert!(matches!(reader.line(bad.as_bytes()), Some(AgentEvent::Malformed(_))));
        assert_eq!(reader.line(br#"{"type":"message","text":"hi"}"#), Some(AgentEvent::Message("hi".into())));
        assert_eq!(reader.line(b"=== AGENT v9.9 ==="), None);
    }

    #[test]
    fn bytes_that_are_no_text_do_not_hide_a_message() {
        let said = read(b"{\"type\":\"message\",\"text\":\"caf\xe9\"}");
        assert_eq!(said, Some(AgentEvent::Message("caf\u{fffd}".into())));
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
                None | Some(AgentEvent::Malformed(_) | AgentEvent::Result(EngineResult::Completed)) => {}
                other => prop_assert!(false, "{:?} was read as {other:?}", String::from_utf8_lossy(&line)),
            }
        }

        #[test]
        fn arguments_survive_a_round_trip(text in ".*", items in prop::collection::vec(".*", 0..4)) {
            for line in [ProtocolLine::Message { text }, ProtocolLine::Plan { items }] {
                let written = serde_json::to_vec(&line).unwrap();
                prop_assert!(!written.contains(&b'\n'));
                prop_assert_eq!(read(written), Some(line.into()));
            }
        }
    }
}
