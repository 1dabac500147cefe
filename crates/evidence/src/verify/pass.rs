//! The one pass over every file: hash, scan and read in a single go.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;

use herma_core::step::TraceLine;
use herma_core::{Contract, Decision, Digest, Report, contract};
use sha2::{Digest as _, Sha256};

use super::events::EventsSeen;
use super::listing::list;
use super::model_calls::ModelCallsSeen;
use super::test_log::TestLog;
use super::transcript::TranscriptSeen;
use super::{Trust, seal};
use crate::attest::Attestation;
use crate::envelope::{Envelope, Statement};
use crate::file_reading::open_regular;
use crate::lines::LineBuffer;
use crate::patch::{PatchReader, PatchedFile};
use crate::secrets::{SecretFinding, SecretScanner};
use crate::{layout, report, trace};

/// The size of a read.
const CHUNK: usize = 1 << 20;
/// The largest attestation, decision and outcome that are read.
const MAX_SMALL: u64 = 4 << 20;
/// The largest record of an environment: it lists every input.
const MAX_ENVIRONMENT: u64 = 32 << 20;
/// The largest file that is read without a trusted signature: four times the largest log. A larger one, such as the
/// patch of large files, is read if a trusted report lists it with exactly that size.
const MAX_UNVOUCHED: u64 = 256 << 20;
/// The maximum number of steps of a trace; a run has twelve, and a few more after an interruption.
const MAX_STEPS: usize = 1_000;

/// Everything that the pass learned of a bundle.
pub(super) struct BundleContents {
    pub(super) files: BTreeMap<String, (Digest, u64)>,
    pub(super) problems: Vec<String>,
    pub(super) findings: BTreeMap<String, Vec<SecretFinding>>,
    pub(super) events: Option<EventsSeen>,
    pub(super) trace: Option<Result<Vec<TraceLine>, String>>,
    pub(super) patch: Option<Result<Vec<PatchedFile>, String>>,
    pub(super) model_calls: Option<ModelCallsSeen>,
    pub(super) outcome: Option<Result<Vec<u8>, String>>,
    pub(super) confinement: Option<Result<Vec<u8>, String>>,
    pub(super) environment: Option<Result<Vec<u8>, String>>,
    pub(super) report_text: Option<Result<Vec<u8>, String>>,
    pub(super) test_log: Option<TestLog>,
    pub(super) transcript: Option<TranscriptSeen>,
    envelope: Result<(Envelope, Statement), String>,
    report: Result<Report, String>,
    contract: Result<Contract, String>,
    decision: Result<Decision, String>,
}

/// The processing of a file besides hashing and scanning.
enum FileReader {
    Nothing,
    /// Kept whole up to a limit.
    Keep(u64, Vec<u8>),
    Events(Box<EventsSeen>),
    Trace(LineBuffer, Result<Vec<TraceLine>, String>),
    Patch(PatchReader),
    ModelCalls(Box<ModelCallsSeen>),
    TestLog(TestLog),
    Transcript(TranscriptSeen),
}

/// Reads a bundle once. An attestation that is not written yet replaces the file.
pub(super) fn look(dir: &Path, trust: &Trust, attestation: Option<&Attestation>) -> BundleContents {
    let listing = list(dir);
    let gone = |name| format!("{name} is not there");
    let mut seen = BundleContents {
        files: BTreeMap::new(),
        problems: listing.problems,
        findings: BTreeMap::new(),
        events: None,
        trace: None,
        patch: None,
        model_calls: None,
        outcome: None,
        confinement: None,
        environment: None,
        report_text: None,
        test_log: None,
        transcript: None,
        envelope: Err(gone(layout::ATTESTATION)),
        report: Err(gone(layout::REPORT)),
        contract: Err(gone(layout::CONTRACT)),
        decision: Err(gone(layout::DECISION)),
    };
    let mut chunk = vec![0; CHUNK];
    // These two come first: they say how large the others are, and how much of them has to be kept.
    let first = [layout::ATTESTATION, layout::REPORT];
    if let Some(attestation) = attestation {
        let name = layout::ATTESTATION;
        seen.content(name, attestation.as_bytes(), u64::MAX, &mut chunk);
    }
    for name in first.iter().filter_map(|name| listing.names.get(*name)) {
        seen.file(dir, name, MAX_UNVOUCHED, &mut chunk);
    }
    let vouched = seal::vouches_for_report(&seen, trust);
    for name in listing.names.iter().filter(|name| !first.contains(&name.as_str())) {
        let listed = seen.report.as_ref().ok().filter(|_| vouched).and_then(|r| r.artifacts.get(name));
        let limit = listed.map_or(0, |artifact| artifact.size).max(MAX_UNVOUCHED);
        seen.file(dir, name, limit, &mut chunk);
    }
    seen
}

impl BundleContents {
    /// The report, or why there is none.
    pub(super) fn report(&self) -> Result<&Report, String> {
        self.report.as_ref().map_err(Clone::clone)
    }

    /// The contract, or why there is none.
    pub(super) fn contract(&self) -> Result<&Contract, String> {
        self.contract.as_ref().map_err(Clone::clone)
    }

    /// The decision, or why there is none.
    pub(super) fn decision(&self) -> Result<&Decision, String> {
        self.decision.as_ref().map_err(Clone::clone)
    }

    /// The attestation, or why there is none.
    pub(super) fn envelope(&self) -> Result<&(Envelope, Statement), String> {
        self.envelope.as_ref().map_err(Clone::clone)
    }

    /// Whether the report gives a reason for a file not being there.
    pub(super) fn reason(&self, name: &str) -> Result<Option<&str>, String> {
        Ok(self.report()?.not_applicable.get(name).map(String::as_str))
    }

    fn file(&mut self, dir: &Path, name: &str, limit: u64, chunk: &mut [u8]) {
        let opened = open_regular(&dir.join(name)).and_then(|file| Ok((file.metadata()?.len(), file)));
        let (length, file) = match opened {
            Ok(opened) => opened,
            Err(error) => return self.problems.push(format!("{name} could not be opened: {error}")),
        };
        if length > limit {
            return self.problems.push(too_large(name, limit));
        }
        self.content(name, file, limit, chunk);
    }

    fn content(&mut self, name: &str, mut file: impl Read, limit: u64, chunk: &mut [u8]) {
        let (mut hash, mut size, mut scanner) = (Sha256::new(), 0, SecretScanner::new());
        let mut reader = self.reader(name);
        loop {
            let read = match file.read(chunk) {
                Ok(0) => break,
                Ok(read) => read,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(error) => return self.problems.push(format!("{name} could not be read: {error}")),
            };
            hash.update(&chunk[..read]);
            scanner.push(&chunk[..read]);
            reader.push(&chunk[..read]);
            size += read as u64;
            // It grows while it is read.
            if size > limit {
                return self.problems.push(too_large(name, limit));
            }
        }
        self.files.insert(name.to_owned(), (Digest::from_bytes(hash.finalize().into()), size));
        let findings = scanner.finish();
        if !findings.is_empty() {
            self.findings.insert(name.to_owned(), findings);
        }
        self.read(name, reader);
    }

    fn reader(&self, name: &str) -> FileReader {
        match name {
            layout::REPORT | layout::REPORT_MD => FileReader::Keep(report::MAX_BYTES, Vec::new()),
            layout::CONTRACT => FileReader::Keep(contract::MAX_BYTES, Vec::new()),
            layout::ATTESTATION | layout::DECISION | layout::OUTCOME | layout::CONFINEMENT => {
                FileReader::Keep(MAX_SMALL, Vec::new())
            }
            layout::ENVIRONMENT => FileReader::Keep(MAX_ENVIRONMENT, Vec::new()),
            layout::TEST_LOG => FileReader::TestLog(TestLog::new(self.report.as_ref().ok())),
            layout::TRANSCRIPT => FileReader::Transcript(TranscriptSeen::new()),
            layout::EVENTS => FileReader::Events(Box::new(EventsSeen::new())),
            layout::TRACE => FileReader::Trace(LineBuffer::new(trace::MAX_LINE_BYTES), Ok(Vec::new())),
            layout::PATCH => {
                FileReader::Patch(PatchReader::new(self.report.as_ref().map_or(0, |r| r.changed_files.len())))
            }
            layout::MODEL_CALLS => {
                let run = self.report.as_ref().map_or_else(|_| String::new(), |r| r.run_id.to_string());
                FileReader::ModelCalls(Box::new(ModelCallsSeen::new(&run)))
            }
            _ => FileReader::Nothing,
        }
    }

    fn read(&mut self, name: &str, reader: FileReader) {
        match reader {
            FileReader::Nothing => {}
            FileReader::Keep(limit, bytes) if bytes.len() as u64 > limit => {
                let large = format!("{name} is larger than {limit} bytes");
                self.keep(name, Err(large));
            }
            FileReader::Keep(_, bytes) => self.keep(name, Ok(&bytes)),
            FileReader::Events(mut events) => {
                events.finish();
                self.events = Some(*events);
            }
            FileReader::Trace(mut lines, mut steps) => {
                lines.finish(&mut |_| steps = Err("the last line has no end".to_owned()));
                self.trace = Some(steps);
            }
            FileReader::TestLog(log) => self.test_log = Some(log),
            FileReader::Transcript(mut transcript) => {
                transcript.finish();
                self.transcript = Some(transcript);
            }
            FileReader::Patch(patch) => self.patch = Some(patch.finish().map_err(|e| e.to_string())),
            FileReader::ModelCalls(mut calls) => {
                calls.finish();
                self.model_calls = Some(*calls);
            }
        }
    }

    fn keep(&mut self, name: &str, bytes: Result<&[u8], String>) {
        let named = |problem: String| format!("{name}: {problem}");
        match name {
            layout::REPORT => {
                self.report = bytes.and_then(|b| report::parse(b).map_err(|bad| named(bad.to_string())));
            }
            layout::CONTRACT => {
                self.contract = bytes.and_then(|b| Contract::parse(b).map_err(|e| named(e.to_string())));
            }
            layout::OUTCOME => self.outcome = Some(bytes.map(<[u8]>::to_vec)),
            layout::CONFINEMENT => self.confinement = Some(bytes.map(<[u8]>::to_vec)),
            layout::ENVIRONMENT => self.environment = Some(bytes.map(<[u8]>::to_vec)),
            layout::REPORT_MD => self.report_text = Some(bytes.map(<[u8]>::to_vec)),
            layout::DECISION => {
                self.decision =
                    bytes.and_then(|b| serde_json::from_slice(b).map_err(|e| named(e.to_string())));
            }
            _ => {
                let parse = |b: &[u8]| {
                    let envelope = Envelope::parse(b)?;
                    let statement = envelope.statement()?;
                    Ok((envelope, statement))
                };
                self.envelope = bytes
                    .and_then(|b| parse(b).map_err(|e: crate::envelope::BadEnvelope| named(e.to_string())));
            }
        }
    }
}

fn too_large(name: &str, limit: u64) -> String {
    format!("{name} is larger than {limit} bytes, and no trusted key vouches for that")
}

impl FileReader {
    fn push(&mut self, chunk: &[u8]) {
        match self {
            Self::Nothing => {}
            Self::Keep(limit, bytes) => {
                // One byte more than the limit is kept, to know that it was exceeded.
                let room = (*limit + 1).saturating_sub(bytes.len() as u64);
                let room = usize::try_from(room).unwrap_or(usize::MAX);
                bytes.extend_from_slice(&chunk[..chunk.len().min(room)]);
            }
            Self::Events(events) => events.push(chunk),
            Self::Trace(lines, steps) => lines.push(chunk, &mut |line| {
                if let Ok(found) = steps {
                    match trace::parse_line(line.bytes) {
                        Ok(step) if !line.cut && found.len() < MAX_STEPS => found.push(step),
                        Ok(_) => *steps = Err("it is too long".to_owned()),
                        Err(bad) => *steps = Err(bad.to_string()),
                    }
                }
            }),
            Self::TestLog(log) => log.push(chunk),
            Self::Transcript(transcript) => transcript.push(chunk),
            Self::Patch(patch) => patch.push(chunk),
            Self::ModelCalls(calls) => calls.push(chunk),
        }
    }
}
