//! What an answer came to, and how one that is no stream is read: when all of it has passed.

use bytes::Bytes;
use herma_core::Digest;
use herma_core::model_call::Ended;
use sha2::{Digest as _, Sha256};
use smallvec::SmallVec;

use super::flight::{Cost, Ending, Flight};
use super::scribe::EndedCall;
use crate::dialect::answered;
use crate::door::{Door, dialect_of};

/// The largest answer, not a stream, that is looked into. What is larger passes, and is charged at the most.
const MOST_READ: usize = 16 << 20;

/// What an answer came to.
pub(super) struct Read {
    pub(super) ended: Ended,
    pub(super) cost: Cost,
    pub(super) answered: Option<String>,
    pub(super) stop: Option<String>,
    pub(super) tool_calls: u64,
    pub(super) reason: Option<&'static str>,
}

/// What has passed of an answer that is no stream.
#[derive(Debug, Default)]
pub(super) struct Parts {
    /// All of it, as long as that is not too much.
    kept: SmallVec<[Bytes; 1]>,
    size: usize,
    /// Of what is no longer kept.
    hash: Sha256,
}

/// An answer that is no stream and has passed.
#[derive(Debug)]
pub(super) struct WholeAnswer {
    pub(super) flight: Box<Flight>,
    pub(super) status: u16,
    pub(super) parts: Parts,
}

impl Parts {
    pub(super) fn add(&mut self, part: &Bytes) {
        self.size += part.len();
        self.kept.push(part.clone());
        if self.size > MOST_READ {
            for part in self.kept.drain(..) {
                self.hash.update(&part);
            }
        }
    }

    pub(super) fn hashed(&self) -> Sha256 {
        let mut hash = self.hash.clone();
        for part in &self.kept {
            hash.update(part);
        }
        hash
    }

    fn read(&self, door: Door, expects_output: bool) -> Read {
        if self.size > MOST_READ {
            return Read { reason: Some("too_large_to_read"), ..Read::unread() };
        }
        if door == Door::CountTokens {
            let (ended, cost) = (Ended::Answered, Cost::NoTokens);
            return Read { ended, cost, reason: None, ..Read::unread() };
        }
        let said = match &*self.kept {
            [one] => answered(dialect_of(door), one),
            parts => answered(dialect_of(door), &parts.concat()),
        };
        let Ok(said) = said else { return Read { reason: Some("not_an_answer"), ..Read::unread() } };
        let (cost, reason) = Cost::reported(said.usage, said.doubt, expects_output);
        let ended = if cost == Cost::Unknown { Ended::Uncounted } else { Ended::Answered };
        Read { ended, cost, answered: said.model, stop: said.stop, tool_calls: said.tool_calls, reason }
    }
}

impl WholeAnswer {
    /// Has it read, settled and recorded, after the client got it.
    pub(super) fn pass_on(self) {
        let shared = self.flight.shared.clone();
        shared.scribe.take(self);
    }

    /// Reads and settles it.
    pub(super) fn close(mut self) -> Option<EndedCall> {
        let read = self.parts.read(self.flight.door, self.flight.expects_output);
        let hash = self.parts.hashed();
        self.flight.close(ending(self.status, read, hash))
    }
}

/// Ends a call with what its answer came to.
pub(super) fn end(mut flight: Box<Flight>, status: u16, read: Read, hash: Sha256) {
    flight.end(ending(status, read, hash));
}

fn ending(status: u16, read: Read, hash: Sha256) -> Ending {
    Ending {
        ended: read.ended,
        status,
        reason: read.reason,
        cost: read.cost,
        response: Some(Digest::from_bytes(hash.finalize().into())),
        answered: read.answered,
        stop: read.stop,
        tool_calls: read.tool_calls,
    }
}

impl Read {
    fn unread() -> Self {
        Self::ended(Ended::Uncounted, Some("no_usage"))
    }

    pub(super) fn left() -> Self {
        Self::ended(Ended::ClientLeft, Some("client_left"))
    }

    pub(super) fn cut() -> Self {
        Self::ended(Ended::Cut, None)
    }

    /// One of which nothing is known but how it ended.
    fn ended(ended: Ended, reason: Option<&'static str>) -> Self {
        Self { ended, cost: Cost::Unknown, answered: None, stop: None, tool_calls: 0, reason }
    }
}
