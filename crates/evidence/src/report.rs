//! Writes and reads `report.json`.

use std::collections::BTreeMap;

use herma_core::report::{Artifact, Freshness};
use herma_core::{Report, Timestamp};

use crate::bad_record::{BadRecord, read_canonical};
use crate::bundle::{Bundle, WriteError};
use crate::layout;
use crate::markdown::render_markdown;
use crate::redact::Redactor;

/// The largest report that is read.
pub const MAX_BYTES: u64 = 64 << 20;

/// Writes `report.json` as it is.
pub fn write_report(bundle: &Bundle, report: &Report) -> Result<(), WriteError> {
    let bytes = to_bytes(report).map_err(|e| WriteError::new(layout::REPORT, e))?;
    bundle.write(layout::REPORT, &bytes)
}

/// Ends a report: takes secrets out of it, since an agent chose the names of files; writes `report.md`, fills in the
/// artifacts, the run's end and the freshness, writes `report.json`.
pub fn seal(bundle: &Bundle, report: &Report, redactor: &Redactor) -> Result<Report, WriteError> {
    let mut report = redactor.redact_record(report).map_err(|e| WriteError::new(layout::REPORT, e))?;
    report.artifacts = bundle.artifacts();
    report.artifacts.remove(layout::REPORT_MD);
    let text = redactor.redact(&render_markdown(&report));
    bundle.write(layout::REPORT_MD, text.as_bytes())?;
    report.artifacts = bundle.artifacts();
    report.run_finished_at = bundle.now().max(report.run_finished_at);
    report.freshness = freshness(&report.artifacts, report.run_started_at, report.run_finished_at);
    write_report(bundle, &report)?;
    Ok(report)
}

/// Whether all files were written inside the run.
#[must_use]
pub fn freshness(
    artifacts: &BTreeMap<String, Artifact>,
    started: Timestamp,
    finished: Timestamp,
) -> Freshness {
    let times = || artifacts.values().map(|artifact| artifact.written_at);
    let oldest = times().min().unwrap_or(finished);
    let newest = times().max().unwrap_or(finished);
    Freshness { oldest, newest, passed: started <= oldest && newest <= finished }
}

/// Reads a report; the bytes must be exactly those that herma writes.
pub fn parse(bytes: &[u8]) -> Result<Report, BadRecord> {
    read_canonical(bytes, "a report", to_bytes)
}

fn to_bytes(report: &Report) -> Result<Vec<u8>, serde_json::Error> {
    let mut bytes = serde_json::to_vec_pretty(report)?;
    bytes.push(b'\n');
    Ok(bytes)
}
