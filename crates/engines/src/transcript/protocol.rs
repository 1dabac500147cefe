//! The transcript of an engine that speaks herma's output protocol; its other lines are output without structure.

use herma_core::engine::EngineResult;
use herma_core::transcript::TranscriptEntry;

use super::arguments::tool_call;
use super::{TranscriptReader, message, output};
use crate::protocol::ProtocolLine;

/// Reads the protocol of `fake` and `stub`.
#[derive(Debug)]
pub(crate) struct ProtocolTranscript;

impl TranscriptReader for ProtocolTranscript {
    fn line(&mut self, line: &[u8]) -> Vec<TranscriptEntry> {
        let entry = match serde_json::from_slice(line) {
            Ok(ProtocolLine::Message { text }) => message(&text),
            Ok(ProtocolLine::Plan { items }) => Some(TranscriptEntry::Plan { items }),
            Ok(ProtocolLine::Tool { name, command }) => Some(tool_call(None, &name, command)),
            Ok(ProtocolLine::Result { status: EngineResult::Failed, .. }) => {
                Some(TranscriptEntry::Error { text: "the engine says that it failed".to_owned() })
            }
            Ok(ProtocolLine::Result { status: EngineResult::Rejected, .. }) => {
                Some(TranscriptEntry::Error { text: "the engine's reviewer rejected the result".to_owned() })
            }
            Ok(ProtocolLine::Hello { .. } | ProtocolLine::Result { .. }) => None,
            Err(_) => output(&String::from_utf8_lossy(line)),
        };
        entry.into_iter().collect()
    }
}
