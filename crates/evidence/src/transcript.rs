//! The transcript of a run: written line by line while the engine works, without secrets, in bounded size.

use herma_core::engine::EngineName;
use herma_core::transcript::{TranscriptEntry, TranscriptHead, TranscriptLine};
use herma_core::{RunId, Timestamp};
use serde::Serialize;

use crate::append::Append;
use crate::bundle::{Bundle, WriteError};
use crate::layout;
use crate::redact::Redactor;

/// The most bytes of a transcript.
pub const MAX_BYTES: usize = 16 << 20;
/// The most bytes of a line: escapes make a text up to six times longer.
pub(crate) const MAX_LINE_BYTES: usize = 1 << 20;

/// The text in place of one that still shows a secret when it is escaped.
const WITHHELD: &str = "[herma withheld a text that shows a secret]";

/// The transcript of a run, under construction.
#[derive(Debug)]
pub struct TranscriptLog {
    bundle: Bundle,
    redactor: Redactor,
    file: Append,
    size: usize,
    latest: Timestamp,
    full: bool,
}

impl TranscriptLog {
    /// A transcript with its first line.
    pub fn create(
        bundle: &Bundle,
        redactor: Redactor,
        run_id: RunId,
        engine: EngineName,
    ) -> Result<Self, WriteError> {
        let file = Append::new(bundle, layout::TRANSCRIPT);
        let latest = Timestamp::MIN;
        let mut log = Self { bundle: bundle.clone(), redactor, file, size: 0, latest, full: false };
        log.write(&line_of(&TranscriptHead::new(run_id, engine))?)?;
        Ok(log)
    }

    /// Appends an entry, as long as there is room.
    pub fn append(&mut self, entry: TranscriptEntry) -> Result<(), WriteError> {
        if self.full {
            return Ok(());
        }
        // The clock may step back; the order of entries may not.
        self.latest = self.latest.max(self.bundle.now());
        let entry = entry.map_texts(|text| self.redactor.redact(text)).bounded();
        let mut line = self.line(&entry)?;
        // Escaping can bring together what was apart.
        if self.redactor.finds_secret(&line) {
            line = self.line(&entry.map_texts(|_| WITHHELD.to_owned()))?;
        }
        if line.len() > MAX_LINE_BYTES {
            let text = format!("[herma left out an entry of {} bytes]", line.len());
            line = self.line(&TranscriptEntry::Output { text })?;
        }
        if self.size + line.len() > MAX_BYTES {
            self.full = true;
            line = self.line(&TranscriptEntry::LeftOut {})?;
        }
        self.write(&line)
    }

    /// Makes the file durable and records it.
    pub fn finish(mut self) -> Result<(), WriteError> {
        self.file.finish()
    }

    fn line(&self, entry: &TranscriptEntry) -> Result<Vec<u8>, WriteError> {
        line_of(&TranscriptLine { ts: self.latest, entry: entry.clone() })
    }

    fn write(&mut self, line: &[u8]) -> Result<(), WriteError> {
        self.file.line(line)?;
        self.size += line.len() + 1;
        Ok(())
    }
}

fn line_of(value: &impl Serialize) -> Result<Vec<u8>, WriteError> {
    serde_json::to_vec(value).map_err(|e| WriteError::new(layout::TRANSCRIPT, e))
}

/// Reads the entries of a transcript; a line that is no entry is left out.
#[must_use]
pub fn read(text: &[u8]) -> Vec<TranscriptLine> {
    let lines = text.split(|byte| *byte == b'\n').skip(1);
    lines.filter_map(|line| serde_json::from_slice(line).ok()).collect()
}
