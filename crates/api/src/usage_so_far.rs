//! The usage of a run that is under way, from the growing record of its router.

use herma_core::RunId;
use herma_core::model_call::{Sums, parse_line};
use herma_core::usage::Usage;
use herma_harness::{FileTail, Installation};
use herma_router::audit;

/// Reads the calls of one run as they end.
#[derive(Debug)]
pub struct UsageSoFar {
    file: FileTail,
    rest: Vec<u8>,
    sums: Sums,
}

impl UsageSoFar {
    /// Of this run.
    #[must_use]
    pub fn of(installation: &Installation, run: RunId) -> Self {
        let file = installation.home.run(run).router().join(audit::MODEL_CALLS);
        Self { file: FileTail::new(file), rest: Vec::new(), sums: Sums::default() }
    }

    /// The usage up to now. Lines that cannot be read are left out: nothing is decided by them.
    pub fn read(&mut self) -> Usage {
        self.rest.extend(self.file.read().unwrap_or_default());
        let whole = self.rest.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let lines: Vec<u8> = self.rest.drain(..whole).collect();
        for call in lines.split(|byte| *byte == b'\n').filter_map(|line| parse_line(line).ok()) {
            self.sums.add(&call);
        }
        Usage::from(&self.sums)
    }
}
