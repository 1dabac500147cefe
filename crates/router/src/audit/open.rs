//! Opening an audit: what a process that was killed left is checked, and closed.

use std::fs::File;
use std::io::{BufReader, Seek as _};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;

use herma_core::model_call::{Chain, ModelCall};
use herma_evidence::Redactor;
use rustix::fs::{FlockOperation, Mode, OFlags, flock, openat};
use std::os::unix::fs::MetadataExt as _;

use super::append::Append;
use super::journal::Noted;
use super::read::{follow, lines};
use super::{Audit, AuditError, CALLS_BEGUN, CallNumber, State};
use crate::budget::Amount;

/// The name of the file that is evidence.
pub const MODEL_CALLS: &str = "model-calls.jsonl";

/// The content of an audit when it was opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opened {
    /// Its records, with those of the calls that were interrupted.
    pub records: u64,
    /// Their charge.
    pub charged: Amount,
    /// The calls that an earlier process began and did not end. They have their records now.
    pub interrupted: Vec<ModelCall>,
}

impl Audit {
    /// Opens the audit of a run in a directory that is there, and makes its files where they are missing. One process
    /// at a time can have it open.
    pub fn open(dir: &Path, run: &str) -> Result<(Self, Opened), AuditError> {
        let at = |name: &str| dir.join(name);
        let io = |name: &'static str, doing: &'static str| {
            move |cause| AuditError::Io { file: dir.join(name), doing, cause }
        };
        let place = File::open(dir).map_err(io("", "open it"))?;
        let calls = open_file(&place, dir, MODEL_CALLS)?;
        flock(&calls, FlockOperation::NonBlockingLockExclusive)
            .map_err(|_| AuditError::InUse { file: at(MODEL_CALLS) })?;
        let begun = open_file(&place, dir, CALLS_BEGUN)?;

        let (mut noted, begun_size) = read_notes(&begun, dir)?;
        let mut next = noted.next_number();
        let mut chain = Chain::new(run);
        let (sums, read) = follow(BufReader::new(&calls), &mut chain, |call| {
            if let Some(number) = call.call {
                noted.ended(number);
            }
        })
        .map_err(io(MODEL_CALLS, "read it"))?
        .map_err(|broken| AuditError::Broken { file: at(MODEL_CALLS), broken })?;
        next = next.max(chain.next_number());

        let state = State {
            chain,
            sums,
            under_way: noted.numbers().collect(),
            next,
            is_poisoned: false,
            is_finished: false,
            line: Vec::new(),
        };
        let audit = Self {
            dir: dir.to_owned(),
            calls: Append::new(MODEL_CALLS, calls, read.whole).map_err(io(MODEL_CALLS, "cut it"))?,
            begun: Append::new(CALLS_BEGUN, begun, begun_size).map_err(io(CALLS_BEGUN, "cut it"))?,
            redactor: Redactor::default(),
            is_dirty: AtomicBool::new(false),
            state: Mutex::new(state),
        };
        let interrupted = audit.close_interrupted(noted)?;
        place.sync_all().map_err(io("", "make it durable"))?;
        let sums = audit.sums();
        Ok((audit, Opened { records: sums.records, charged: sums.charged, interrupted }))
    }

    /// Records what began and did not end. Only when that is durable the notes of it go.
    fn close_interrupted(&self, noted: Noted) -> Result<Vec<ModelCall>, AuditError> {
        let interrupted = self.record_interrupted(&mut self.state(), noted)?;
        self.calls.sync().map_err(|(name, cause)| self.io(name, "make it durable", cause))?;
        self.begun.clear().map_err(|cause| self.io(CALLS_BEGUN, "clear it", cause))?;
        Ok(interrupted)
    }

    /// Records what is under way as interrupted.
    pub(super) fn interrupt(&self, state: &mut State) -> Result<(), AuditError> {
        if state.under_way.is_empty() {
            return Ok(());
        }
        let (mut noted, _) = read_notes(self.begun.file(), &self.dir)?;
        noted.keep(&state.under_way);
        self.record_interrupted(state, noted).map(drop)
    }

    fn record_interrupted(&self, state: &mut State, noted: Noted) -> Result<Vec<ModelCall>, AuditError> {
        self.record(state, noted.interrupted().map(|(number, record)| (Some(CallNumber(number)), record)))
    }
}

/// Opens a file for reading and appending. Links are not followed, and what has a second name is refused: somebody else
/// put it there.
fn open_file(place: &File, dir: &Path, name: &'static str) -> Result<File, AuditError> {
    let file = dir.join(name);
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::APPEND | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let failed = |cause| AuditError::Io { file: file.clone(), doing: "open it", cause };
    let opened: File = match openat(place, name, flags, Mode::RUSR | Mode::WUSR) {
        Err(rustix::io::Errno::LOOP | rustix::io::Errno::ISDIR) => return Err(AuditError::NotAFile { file }),
        opened => opened.map_err(|e| failed(e.into()))?.into(),
    };
    let meta = opened.metadata().map_err(failed)?;
    if !meta.is_file() || meta.nlink() != 1 {
        return Err(AuditError::NotAFile { file });
    }
    Ok(opened)
}

/// Reads `calls-begun` from its start, and says how much of it is whole lines.
fn read_notes(mut begun: &File, dir: &Path) -> Result<(Noted, u64), AuditError> {
    let failed = |cause| AuditError::Io { file: dir.join(CALLS_BEGUN), doing: "read it", cause };
    begun.rewind().map_err(failed)?;
    let (mut noted, mut line) = (Noted::default(), 0);
    let read = lines(BufReader::new(begun), |bytes| {
        line += 1;
        noted.take(bytes)
    });
    match read.map_err(failed)? {
        Ok(lines) => Ok((noted, lines.whole)),
        Err(problem) => Err(AuditError::BadJournal { file: dir.join(CALLS_BEGUN), line, problem }),
    }
}
