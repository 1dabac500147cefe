//! The result of a call, and how a response without a stream is read: after its last byte.

use bytes::Bytes;
use herma_core::Digest;
use herma_core::model_call::Ended;
use herma_dialect::endpoint::{Endpoint, dialect_of};
use herma_dialect::read_response;
use sha2::{Digest as _, Sha256};
use smallvec::SmallVec;

use super::audit_writer::EndedCall;
use super::in_flight::{Cost, Ending, InFlightCall};
use super::reason::Reason;

/// The largest response body that is parsed. A larger one is relayed, and charged at the most.
const MAX_PARSED_BYTES: usize = 16 << 20;

/// The result of a call.
pub(super) struct Read {
    pub(super) ended: Ended,
    pub(super) cost: Cost,
    pub(super) answered: Option<String>,
    pub(super) stop: Option<String>,
    pub(super) tool_calls: u64,
    pub(super) reason: Option<Reason>,
}

/// The relayed bytes of a response without a stream.
#[derive(Debug, Default)]
pub(super) struct Parts {
    /// All of them, up to the limit.
    kept: SmallVec<[Bytes; 1]>,
    size: usize,
    /// The hash of bytes that are no longer kept.
    hash: Sha256,
}

/// A response without a stream that was relayed.
#[derive(Debug)]
pub(super) struct WholeAnswer {
    pub(super) in_flight: Box<InFlightCall>,
    pub(super) status: u16,
    pub(super) parts: Parts,
}

impl Parts {
    pub(super) fn add(&mut self, part: &Bytes) {
        self.size += part.len();
        self.kept.push(part.clone());
        if self.size > MAX_PARSED_BYTES {
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

    fn read(&self, endpoint: Endpoint, expects_output: bool) -> Read {
        if self.size > MAX_PARSED_BYTES {
            return Read { reason: Some(Reason::TooLargeToRead), ..Read::unread() };
        }
        if endpoint == Endpoint::CountTokens {
            let (ended, cost) = (Ended::Answered, Cost::NoTokens);
            return Read { ended, cost, reason: None, ..Read::unread() };
        }
        let said = match &*self.kept {
            [one] => read_response(dialect_of(endpoint), one),
            parts => read_response(dialect_of(endpoint), &parts.concat()),
        };
        let Ok(said) = said else { return Read { reason: Some(Reason::NotAnAnswer), ..Read::unread() } };
        let (cost, reason) = Cost::reported(said.usage, said.doubt, expects_output);
        let ended = if cost == Cost::Unknown { Ended::Uncounted } else { Ended::Answered };
        Read { ended, cost, answered: said.model, stop: said.stop, tool_calls: said.tool_calls, reason }
    }
}

impl WholeAnswer {
    /// Queues it to be read, settled and recorded.
    pub(super) fn pass_on(self) {
        let shared = self.in_flight.shared.clone();
        shared.audit_writer.take(self);
    }

    /// Reads and settles it.
    pub(super) fn close(mut self) -> Option<EndedCall> {
        let read = self.parts.read(self.in_flight.endpoint, self.in_flight.expects_output);
        let hash = self.parts.hashed();
        self.in_flight.close(ending(self.status, read, hash))
    }
}

/// Ends a call with its result.
pub(super) fn end(mut in_flight: Box<InFlightCall>, status: u16, read: Read, hash: Sha256) {
    in_flight.end(ending(status, read, hash));
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
        Self::ended(Ended::Uncounted, Some(Reason::NoUsage))
    }

    pub(super) fn left() -> Self {
        Self::ended(Ended::ClientLeft, Some(Reason::ClientLeft))
    }

    pub(super) fn cut() -> Self {
        Self::ended(Ended::Cut, None)
    }

    /// A result of which only the ending is known.
    fn ended(ended: Ended, reason: Option<Reason>) -> Self {
        Self { ended, cost: Cost::Unknown, answered: None, stop: None, tool_calls: 0, reason }
    }
}
