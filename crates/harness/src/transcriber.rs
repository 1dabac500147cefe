//! Writes the transcript of a run while the engine works. It decides nothing: the engine's end and its events have readers of
//! their own.

use herma_core::transcript::TranscriptEntry;
use herma_engines::{Engine, TranscriptReader};
use herma_evidence::{Redactor, TranscriptLog, WriteError};

use crate::context::RunContext;

/// Reads the transcript out of an engine's output and writes it to the bundle.
pub(crate) struct Transcriber {
    reader: Box<dyn TranscriptReader>,
    log: TranscriptLog,
    /// The first line that could not be written. The engine's output is read on.
    failed: Option<WriteError>,
}

impl Transcriber {
    pub(crate) fn of(
        ctx: &RunContext<'_>,
        engine: &dyn Engine,
        redactor: Redactor,
    ) -> Result<Self, WriteError> {
        let log = TranscriptLog::create(&ctx.bundle, redactor, ctx.plan.run_id, ctx.plan.engine.clone())?;
        Ok(Self { reader: engine.transcript(&ctx.order.assignment()), log, failed: None })
    }

    pub(crate) fn line(&mut self, line: &[u8]) {
        let entries = self.reader.line(line);
        self.write(entries);
    }

    pub(crate) fn finish(mut self) -> Result<(), WriteError> {
        let entries = self.reader.finish();
        self.write(entries);
        self.log.finish()?;
        self.failed.map_or(Ok(()), Err)
    }

    fn write(&mut self, entries: Vec<TranscriptEntry>) {
        for entry in entries {
            if self.failed.is_none() {
                self.failed = self.log.append(entry).err();
            }
        }
    }
}
