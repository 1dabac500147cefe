//! The transcript of a run for readers: the agent's words, with herma's denials between them.

use std::io;
use std::path::Path;

use herma_core::event::{Permission, ToolEvaluated};
use herma_core::transcript::{TranscriptEntry, TranscriptLine};
use herma_core::{Event, EventType};
use herma_evidence::{layout, transcript};
use herma_files::read_regular;
use serde_json::Value;

/// Reads the transcript of a bundle, in the order of time; `None` if the run has none. Lines that cannot be read are skipped:
/// `herma verify` reports them.
pub fn read_transcript(bundle: &Path) -> io::Result<Option<Vec<TranscriptLine>>> {
    let written = match read_regular(&bundle.join(layout::TRANSCRIPT), u64::MAX) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        read => read?,
    };
    let mut lines = transcript::read(&written);
    let events = read_regular(&bundle.join(layout::EVENTS), u64::MAX).unwrap_or_default();
    let events = events.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok());
    lines.extend(events.filter_map(|event| denial(&event)));
    lines.sort_by_key(|line| line.ts);
    Ok(Some(lines))
}

/// The denial that an event records, if it does.
#[must_use]
pub fn denial(event: &Event) -> Option<TranscriptLine> {
    if event.kind != EventType::ToolEvaluated {
        return None;
    }
    let call: ToolEvaluated = serde_json::from_value(Value::Object(event.data.clone())).ok()?;
    let entry = (call.permission == Some(Permission::Denied)).then(|| TranscriptEntry::Denial {
        tool: call.tool,
        arguments: call.command,
        reason: call.reason.unwrap_or_default(),
    })?;
    Some(TranscriptLine { ts: event.ts, entry })
}
