//! Checks the form of a transcript: it is of this run and engine, and every line is an entry, in the order of time.

use herma_core::transcript::{TranscriptEntry, TranscriptHead, TranscriptLine};
use herma_core::{Report, Timestamp};

use crate::layout;
use crate::lines::{BoundedLine, LineBuffer};
use crate::transcript::{MAX_BYTES, MAX_LINE_BYTES};

/// The reader of a transcript.
pub(super) struct TranscriptSeen {
    lines: Option<LineBuffer>,
    found: Found,
}

#[derive(Default)]
struct Found {
    head: Option<TranscriptHead>,
    last: Timestamp,
    bytes: usize,
    problem: Option<String>,
}

impl TranscriptSeen {
    pub(super) fn new() -> Self {
        Self { lines: Some(LineBuffer::new(MAX_LINE_BYTES)), found: Found::default() }
    }

    pub(super) fn push(&mut self, chunk: &[u8]) {
        let found = &mut self.found;
        if let Some(lines) = &mut self.lines {
            lines.push(chunk, &mut |line| found.take(line));
        }
        found.bytes += chunk.len();
        if found.bytes > MAX_BYTES + MAX_LINE_BYTES {
            found.problem.get_or_insert_with(|| "it is too large".to_owned());
            self.lines = None;
        }
    }

    pub(super) fn finish(&mut self) {
        let found = &mut self.found;
        if let Some(mut lines) = self.lines.take() {
            lines.finish(&mut |line| found.take(line));
        }
    }

    /// Whether it is the transcript of this run.
    pub(super) fn check(&self, report: &Report) -> Result<(), String> {
        let name = layout::TRANSCRIPT;
        if let Some(problem) = &self.found.problem {
            return Err(format!("{name}: {problem}"));
        }
        let head = self.found.head.as_ref().ok_or_else(|| format!("{name} has no first line"))?;
        if head.run_id != report.run_id || head.engine != report.engine {
            return Err(format!("{name} is of another run or engine"));
        }
        Ok(())
    }
}

impl Found {
    fn take(&mut self, line: BoundedLine<'_>) {
        if self.problem.is_none() {
            self.problem = self.read(line).err();
        }
    }

    fn read(&mut self, line: BoundedLine<'_>) -> Result<(), String> {
        if !line.is_whole() {
            return Err("a line is too long, or has no end".to_owned());
        }
        if self.head.is_none() {
            let head: TranscriptHead =
                serde_json::from_slice(line.bytes).map_err(|e| format!("its first line: {e}"))?;
            if head.schema != TranscriptHead::SCHEMA {
                return Err(format!("its schema is {:?}", head.schema));
            }
            self.head = Some(head);
            return Ok(());
        }
        let entry: TranscriptLine = serde_json::from_slice(line.bytes).map_err(|e| format!("a line: {e}"))?;
        // Readers would take it for herma's own words; denials are in the events.
        if matches!(entry.entry, TranscriptEntry::Denial { .. }) {
            return Err("it has a denial, which no agent can say".to_owned());
        }
        if entry.ts < self.last {
            return Err("its entries are not in the order of time".to_owned());
        }
        self.last = entry.ts;
        Ok(())
    }
}
