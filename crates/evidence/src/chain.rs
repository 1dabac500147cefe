//! The chain of events: each line names the digest of the line before it.

use herma_core::event::Event;
use herma_core::{Digest, RunId, Timestamp};

use crate::bad_record::{BadRecord, read_canonical};

/// The longest line that an event can have.
pub const LONGEST_LINE: usize = 256 << 10;

/// The state of a chain.
#[derive(Clone, Debug)]
pub struct Chain {
    run_id: Option<RunId>,
    seq: u64,
    prev: Digest,
    last_ts: Option<Timestamp>,
}

/// A line does not continue the chain.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {}: {problem}", seq + 1)]
pub struct Broken {
    /// The place in the chain, from 0.
    pub seq: u64,
    /// The problem with the line.
    pub problem: String,
}

impl Chain {
    /// A chain without a link. With a run's name, every event must be of that run; else of the first event's run.
    #[must_use]
    pub fn new(run_id: Option<RunId>) -> Self {
        Self { run_id, seq: 0, prev: Digest::of(b""), last_ts: None }
    }

    /// The place of the next event.
    #[must_use]
    pub fn seq(&self) -> u64 {
        self.seq
    }

    /// The digest that the next event must contain.
    #[must_use]
    pub fn prev(&self) -> Digest {
        self.prev
    }

    /// When the last event was written.
    #[must_use]
    pub fn last_ts(&self) -> Option<Timestamp> {
        self.last_ts
    }

    /// Checks that a line (without its newline) continues the chain, and advances it.
    pub fn follow(&mut self, line: &[u8]) -> Result<Event, Broken> {
        let event = self.check(line).map_err(|problem| Broken { seq: self.seq, problem })?;
        self.run_id = Some(event.run_id);
        self.seq += 1;
        self.prev = Digest::of(line);
        self.last_ts = Some(event.ts);
        Ok(event)
    }

    fn check(&self, line: &[u8]) -> Result<Event, String> {
        let event = parse_line(line).map_err(|bad| bad.to_string())?;
        if event.seq != self.seq {
            return Err(format!("seq is {}, expected {}", event.seq, self.seq));
        }
        if event.prev != self.prev {
            return Err("prev is not the digest of the line before".to_owned());
        }
        if self.run_id.is_some_and(|id| id != event.run_id) {
            return Err(format!("it belongs to another run, {}", event.run_id));
        }
        Ok(event)
    }
}

/// Reads one line of `events.jsonl` without its newline. Only the canonical spelling is taken.
pub fn parse_line(line: &[u8]) -> Result<Event, BadRecord> {
    if line.len() > LONGEST_LINE {
        return Err(BadRecord::TooLong { bytes: line.len(), max_bytes: LONGEST_LINE });
    }
    read_canonical(line, "an event", serde_json_canonicalizer::to_vec)
}
