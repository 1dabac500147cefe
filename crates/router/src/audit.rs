//! The record of every call: chained, and written before anything depends on it.
//!
//! Two files. `model-calls.jsonl` has one line for each call that ended, and is evidence. `calls-begun` has one line for
//! each call that is about to be made, with its maximum cost, and is not evidence. The second is written before an upstream
//! is tried, the first when the call ends or right after its answer. So after a kill at any moment the next start finds the
//! calls that began and have no record, and records them as interrupted, charged at the most.

mod append;
mod error;
mod journal;
mod open;
mod read;

use std::collections::BTreeSet;
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use herma_core::model_call::{Chain, Ended, LONGEST_TEXT};
pub use herma_core::model_call::{ModelCall, Sums, Unchained};
use herma_evidence::Redactor;

use self::append::Append;
pub use self::error::AuditError;
use self::journal::Note;
pub use self::journal::{Beginning, CALLS_BEGUN};
pub use self::open::{MODEL_CALLS, Opened};
pub use self::read::{Read, read};
use crate::budget::Amount;

/// Which call of a run it is, counted as calls begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallNumber(u64);

impl fmt::Display for CallNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The audit of one run. It is shared as it is: what changes is behind one lock, and no lock is held while the disk is
/// waited for.
#[derive(Debug)]
pub struct Audit {
    dir: PathBuf,
    calls: Append,
    begun: Append,
    /// Clients and upstreams write names into the records, and these are evidence.
    redactor: Redactor,
    /// Whether something was written since the last [`Audit::sync`].
    is_dirty: AtomicBool,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    chain: Chain,
    sums: Sums,
    /// The calls that began and have no record.
    under_way: BTreeSet<u64>,
    next: u64,
    /// Whether a record could not be written: no call is begun any more.
    is_poisoned: bool,
    is_finished: bool,
    /// The buffer of a line.
    line: Vec<u8>,
}

impl State {
    fn may_begin(&self) -> Result<(), AuditError> {
        match self {
            Self { is_finished: true, .. } => Err(AuditError::Finished),
            Self { is_poisoned: true, .. } => Err(AuditError::Poisoned),
            _ => Ok(()),
        }
    }
}

impl Audit {
    /// A call is about to be made and can cost so much at most. When this returns, that is written: only then may an
    /// upstream be asked. Where it fails the call must not be made.
    pub fn begin(&self, most: Amount, beginning: &Beginning<'_>) -> Result<CallNumber, AuditError> {
        let state = &mut *self.state();
        state.may_begin()?;
        let number = state.next;
        let mut asked = beginning.asked.to_owned();
        self.redact(&mut asked);
        let beginning = Beginning { asked: &asked, ..*beginning };
        self.note(&Note::began(number, most, &beginning), &mut state.line)?;
        state.next += 1;
        state.under_way.insert(number);
        Ok(CallNumber(number))
    }

    /// A call is about to be made once more, after an attempt of unknown cost: it can cost this much more.
    pub fn more(&self, call: CallNumber, most: Amount) -> Result<(), AuditError> {
        let state = &mut *self.state();
        state.may_begin()?;
        if !state.under_way.contains(&call.0) {
            return Err(AuditError::NotUnderWay(call.0));
        }
        self.note(&Note::More { call: call.0, most: most.bounded() }, &mut state.line)
    }

    /// Records a call that ended, or one that was refused before it began, and says its place. Where it cannot be
    /// written no further call is begun; the next start finds the call that began and charges it at the most.
    pub fn end(&self, call: Option<CallNumber>, record: Unchained) -> Result<u64, AuditError> {
        self.end_all(vec![(call, record)])
    }

    /// The same for several calls at once: they are written in one go, all of them or none. Says the place of the first.
    pub fn end_all(&self, calls: Vec<(Option<CallNumber>, Unchained)>) -> Result<u64, AuditError> {
        let state = &mut *self.state();
        if state.is_finished {
            return Err(AuditError::Finished);
        }
        let mut numbers = BTreeSet::new();
        for CallNumber(number) in calls.iter().filter_map(|(call, _)| *call) {
            if !state.under_way.contains(&number) || !numbers.insert(number) {
                return Err(AuditError::NotUnderWay(number));
            }
        }
        let place = state.chain.seq();
        let recorded = self.record(state, calls);
        state.is_poisoned |= recorded.is_err();
        recorded.map(|_| place)
    }

    /// The sums of all records so far.
    #[must_use]
    pub fn sums(&self) -> Sums {
        self.state().sums.clone()
    }

    /// How many calls have begun: the number of the next one.
    #[must_use]
    pub fn calls_begun(&self) -> u64 {
        self.state().next
    }

    /// How many calls are under way.
    #[must_use]
    pub fn under_way(&self) -> usize {
        self.state().under_way.len()
    }

    /// Makes durable what is written so far. It waits for the disk and must not be called where others wait for that.
    pub fn sync(&self) -> Result<(), AuditError> {
        if self.is_dirty.swap(false, Ordering::AcqRel) { self.sync_now() } else { Ok(()) }
    }

    fn sync_now(&self) -> Result<(), AuditError> {
        let synced = self.begun.sync().and_then(|()| self.calls.sync());
        if synced.is_err() {
            // The disk reports a lost write only once.
            self.state().is_poisoned = true;
        }
        synced.map_err(|(name, cause)| self.io(name, "make it durable", cause))
    }

    /// Ends the audit. Calls that are still in flight are recorded as interrupted and charged at the most; nothing can be
    /// begun or recorded after it. Then the file is durable, and `calls-begun` is removed. Idempotent.
    pub fn finish(&self) -> Result<Sums, AuditError> {
        let sums = {
            let state = &mut *self.state();
            if !state.is_finished {
                self.interrupt(state)?;
                state.is_finished = true;
            }
            state.sums.clone()
        };
        self.sync_now()?;
        match std::fs::remove_file(self.dir.join(CALLS_BEGUN)) {
            Err(cause) if cause.kind() != io::ErrorKind::NotFound => {
                Err(self.io(CALLS_BEGUN, "take it away", cause))
            }
            _ => Ok(sums),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // File and memory change together, at the end of each operation.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes secrets out of a name.
    fn redact(&self, name: &mut String) {
        let mut clean = name.clone();
        self.redactor.redact_text(&mut clean);
        if clean != *name {
            // Truncating twice could leave a fragment of a secret.
            *name = if clean.len() > LONGEST_TEXT { Redactor::unclear() } else { clean };
        }
    }

    fn note(&self, note: &Note<'_>, line: &mut Vec<u8>) -> Result<(), AuditError> {
        line.clear();
        note.write(line);
        line.push(b'\n');
        let written = self.begun.lines(line).map_err(|cause| self.io(CALLS_BEGUN, "write to it", cause));
        // After it is written: a sync that is under way may come too early for it.
        self.is_dirty.store(true, Ordering::Release);
        written
    }

    /// Writes the next lines of the chain.
    fn record(
        &self,
        state: &mut State,
        calls: impl IntoIterator<Item = (Option<CallNumber>, Unchained)>,
    ) -> Result<Vec<ModelCall>, AuditError> {
        // Not the state's own until they are written.
        let mut chain = state.chain.clone();
        let mut recorded = Vec::new();
        state.line.clear();
        for (call, mut record) in calls {
            record.texts_of_others().for_each(|text| self.redact(text));
            let start = state.line.len();
            let number = call.map(|call| call.0);
            let call = chain.place(number, record, &mut state.line).map_err(|broken| self.broken(broken))?;
            chain.go_on(&call, &state.line[start..]);
            state.line.push(b'\n');
            recorded.push(call);
        }
        let written = self.calls.lines(&state.line);
        self.is_dirty.store(true, Ordering::Release);
        written.map_err(|cause| self.io(MODEL_CALLS, "write to it", cause))?;
        state.chain = chain;
        for call in &recorded {
            state.sums.add(call);
            if let Some(number) = call.call {
                state.under_way.remove(&number);
            }
        }
        Ok(recorded)
    }
}

#[cfg(test)]
mod tests {
    use std::fs::OpenOptions;

    use herma_core::Digest;
    use herma_core::model_call::Endpoint;
    use tempfile::TempDir;

    use super::*;

    const MOST: Amount = Amount { micro_usd: 1, requests: 1, tokens: 9 };

    fn full(name: &'static str) -> Append {
        Append::new(name, OpenOptions::new().append(true).open("/dev/full").unwrap(), 0).unwrap()
    }

    fn beginning() -> Beginning<'static> {
        let time = herma_core::Timestamp::UNIX_EPOCH;
        Beginning { asked: "m", endpoint: Endpoint::Chat, request: Digest::of(b""), stream: false, time }
    }

    fn record() -> Unchained {
        let mut noted = journal::Noted::default();
        let mut line = Vec::new();
        Note::began(0, MOST, &beginning()).write(&mut line);
        noted.take(&line).unwrap();
        noted.interrupted().next().unwrap().1
    }

    #[test]
    fn a_call_that_cannot_be_noted_is_not_made() {
        let dir = TempDir::new().unwrap();
        let (mut audit, _) = Audit::open(dir.path(), "run").unwrap();
        audit.begun = full(CALLS_BEGUN);
        assert!(matches!(audit.begin(MOST, &beginning()), Err(AuditError::Io { .. })));
        assert_eq!(audit.under_way(), 0);
        // Refusals can still be recorded.
        audit.end(None, record()).unwrap();
    }

    #[test]
    fn after_a_record_that_cannot_be_written_no_call_is_made() {
        let dir = TempDir::new().unwrap();
        let (mut audit, _) = Audit::open(dir.path(), "run").unwrap();
        let (first, second) =
            (audit.begin(MOST, &beginning()).unwrap(), audit.begin(MOST, &beginning()).unwrap());
        audit.end(Some(first), record()).unwrap();
        let disk = std::mem::replace(&mut audit.calls, full(MODEL_CALLS));
        assert!(matches!(audit.end(Some(second), record()), Err(AuditError::Io { .. })));
        assert!(matches!(audit.begin(MOST, &beginning()), Err(AuditError::Poisoned)));
        assert!(matches!(audit.more(second, MOST), Err(AuditError::Poisoned)));
        assert_eq!((audit.sums().records, audit.under_way()), (1, 1));
        assert!(audit.finish().is_err());

        // There is room again: what was not recorded still can be, but nothing is begun before the next start.
        audit.calls = disk;
        audit.end(Some(second), record()).unwrap();
        assert!(matches!(audit.begin(MOST, &beginning()), Err(AuditError::Poisoned)));
        drop(audit);
        let (audit, opened) = Audit::open(dir.path(), "run").unwrap();
        assert_eq!((opened.records, opened.interrupted.len()), (2, 0));
        audit.begin(MOST, &beginning()).unwrap();
    }
}
