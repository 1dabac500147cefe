//! Follows a run of any process by its growing files.

use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::PathBuf;

use herma_core::step::TraceLine;
use herma_core::transcript::TranscriptLine;
use herma_core::{Event, RunId, Timestamp};
use herma_evidence::layout;

use crate::file_reading::open_regular;
use crate::installation::Installation;

/// The most that one poll reads of a file.
const MAX_READ_BYTES: u64 = 4 << 20;

/// One entry of the run's trace, events or transcript.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FollowedEntry {
    /// A step of the trace.
    Step(TraceLine),
    /// An event.
    Event(Event),
    /// A line of the transcript.
    Transcript(TranscriptLine),
}

impl FollowedEntry {
    /// The time at which herma wrote it.
    #[must_use]
    pub fn at(&self) -> Timestamp {
        match self {
            Self::Step(line) => line.ts,
            Self::Event(event) => event.ts,
            Self::Transcript(line) => line.ts,
        }
    }
}

/// Follows a run: its steps, events and transcript, as they are written.
#[derive(Debug)]
pub struct RunFollower {
    run_id: RunId,
    active_mark: PathBuf,
    attestation: PathBuf,
    trace: LineTail,
    events: LineTail,
    transcript: LineTail,
}

impl RunFollower {
    /// Follows this run from its first line on.
    #[must_use]
    pub fn new(installation: &Installation, run_id: RunId) -> Self {
        let bundle = installation.home.run(run_id).bundle();
        Self {
            run_id,
            active_mark: installation.home.root().join("active").join(run_id.to_string()),
            attestation: bundle.join(layout::ATTESTATION),
            trace: LineTail::new(bundle.join(layout::TRACE)),
            events: LineTail::new(bundle.join(layout::EVENTS)),
            transcript: LineTail::new(bundle.join(layout::TRANSCRIPT)),
        }
    }

    /// The run.
    #[must_use]
    pub fn run_id(&self) -> RunId {
        self.run_id
    }

    /// The entries since the last poll, in the order of their times.
    pub fn poll(&mut self) -> io::Result<Vec<FollowedEntry>> {
        let steps = self.trace.lines()?;
        let steps =
            steps.iter().filter_map(|line| serde_json::from_slice(line).ok()).map(FollowedEntry::Step);
        let events = self.events.lines()?;
        let events = events.iter().filter_map(|line| serde_json::from_slice(line).ok());
        // Its first line is no entry.
        let lines = self.transcript.lines()?;
        let lines = lines.iter().filter_map(|line| serde_json::from_slice(line).ok());
        let events = events.map(FollowedEntry::Event).chain(lines.map(FollowedEntry::Transcript));
        let mut entries: Vec<_> = steps.chain(events).collect();
        entries.sort_by_key(FollowedEntry::at);
        Ok(entries)
    }

    /// Whether the run has a transcript: runs of earlier versions and runs without an engine have none.
    #[must_use]
    pub fn has_transcript(&self) -> bool {
        self.transcript.0.path.exists()
    }

    /// Whether nothing follows: the run is signed and its process, or recovery, has given it up.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        !self.active_mark.exists()
    }

    /// Whether the run has left its signed evidence.
    #[must_use]
    pub fn is_signed(&self) -> bool {
        self.attestation.exists()
    }
}

/// A growing file of bytes, read from where the last read ended.
#[derive(Debug)]
pub struct FileTail {
    path: PathBuf,
    offset: u64,
}

impl FileTail {
    /// The file at this path, which need not be there yet.
    #[must_use]
    pub fn new(path: PathBuf) -> Self {
        Self { path, offset: 0 }
    }

    /// The bytes since the last read. Where recovery has cut a torn end off, reading continues at the new end.
    pub fn read(&mut self) -> io::Result<Vec<u8>> {
        let mut file = match open_regular(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            opened => opened?,
        };
        self.offset = self.offset.min(file.metadata()?.len());
        file.seek(SeekFrom::Start(self.offset))?;
        let mut bytes = Vec::new();
        file.take(MAX_READ_BYTES).read_to_end(&mut bytes)?;
        self.offset += bytes.len() as u64;
        Ok(bytes)
    }

    /// Takes back the last `count` bytes: the next read delivers them again.
    fn unread(&mut self, count: usize) {
        self.offset -= (count as u64).min(self.offset);
    }
}

/// A growing file of lines.
#[derive(Debug)]
struct LineTail(FileTail);

impl LineTail {
    fn new(path: PathBuf) -> Self {
        Self(FileTail::new(path))
    }

    /// The whole lines since the last read.
    fn lines(&mut self) -> io::Result<Vec<Vec<u8>>> {
        let bytes = self.0.read()?;
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        self.0.unread(bytes.len() - whole);
        let lines = bytes[..whole].split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        Ok(lines.map(<[u8]>::to_vec).collect())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn lines(tail: &mut LineTail) -> Vec<String> {
        tail.lines().unwrap().into_iter().map(|line| String::from_utf8(line).unwrap()).collect()
    }

    #[test]
    fn a_line_is_delivered_once_and_only_when_it_is_whole() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.jsonl");
        let mut tail = LineTail::new(path.clone());
        assert!(lines(&mut tail).is_empty(), "there is no file yet");
        fs::write(&path, "one\ntw").unwrap();
        assert_eq!(lines(&mut tail), ["one"]);
        assert!(lines(&mut tail).is_empty());
        fs::write(&path, "one\ntwo\n").unwrap();
        assert_eq!(lines(&mut tail), ["two"]);
        // Recovery cuts a torn line off and appends to what is left.
        fs::write(&path, "one\ntwo\nth").unwrap();
        assert!(lines(&mut tail).is_empty());
        fs::write(&path, "one\ntwo\n").unwrap();
        assert!(lines(&mut tail).is_empty());
        fs::write(&path, "one\ntwo\nthree\n").unwrap();
        assert_eq!(lines(&mut tail), ["three"]);
    }

    #[test]
    fn something_else_than_a_file_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        assert!(FileTail::new(dir.path().to_owned()).read().is_err());
    }
}
