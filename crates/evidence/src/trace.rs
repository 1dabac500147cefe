//! The trace: each step of a run is written here before it is taken.

use std::sync::{Mutex, PoisonError};

use herma_core::Step;
use herma_core::step::TraceLine;

use crate::append::Append;
use crate::bad_record::{BadRecord, read_canonical};
use crate::bundle::{Bundle, WriteError};
use crate::layout;

/// The longest line that a trace can have.
pub(crate) const MAX_LINE_BYTES: usize = 1 << 10;

/// The trace of a run.
#[derive(Debug)]
pub struct Trace {
    bundle: Bundle,
    file: Mutex<Append>,
}

impl Trace {
    /// A trace without a step; the file is made with the first one.
    #[must_use]
    pub fn create(bundle: &Bundle) -> Self {
        Self { bundle: bundle.clone(), file: Mutex::new(Append::new(bundle, layout::TRACE)) }
    }

    /// Continues the trace of an interrupted run, and returns its steps.
    pub fn resume(bundle: &Bundle) -> Result<(Self, Vec<TraceLine>), WriteError> {
        let mut steps = Vec::new();
        let file = Append::resume(bundle, layout::TRACE, MAX_LINE_BYTES, |line| {
            parse_line(line).is_ok_and(|step| {
                bundle.not_before(step.ts);
                steps.push(step);
                true
            })
        })?;
        Ok((Self { bundle: bundle.clone(), file: Mutex::new(file) }, steps))
    }

    /// Writes that a step is about to be taken.
    pub fn append(&self, step: Step) -> Result<(), WriteError> {
        let line = TraceLine { ts: self.bundle.now(), step };
        let line = serde_json_canonicalizer::to_vec(&line).map_err(|e| WriteError::new(layout::TRACE, e))?;
        self.file.lock().unwrap_or_else(PoisonError::into_inner).line(&line)
    }

    /// Makes every step so far durable.
    pub fn settle(&self) -> Result<(), WriteError> {
        self.file.lock().unwrap_or_else(PoisonError::into_inner).settle()
    }

    /// Makes the file durable and records it. After that nothing may be appended.
    pub fn finish(&self) -> Result<(), WriteError> {
        self.file.lock().unwrap_or_else(PoisonError::into_inner).finish()
    }
}

/// Reads one line of `trace.jsonl` without its newline. Only the canonical spelling is taken.
pub fn parse_line(line: &[u8]) -> Result<TraceLine, BadRecord> {
    read_canonical(line, "a step", serde_json_canonicalizer::to_vec)
}
