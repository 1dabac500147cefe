//! The body of an answer. What an upstream sends passes as it comes; on the way it is read, hashed and counted, and the
//! call ends with it.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use herma_model::Digest;
use herma_model::model_call::Ended;
use http_body::{Body, Frame, SizeHint};
use sha2::{Digest as _, Sha256};

use super::flight::{Cost, Ending, Flight};
use super::strict::Busy;
use crate::dialect::{ApiError, Dialect, answered};
use crate::door::{Door, dialect_of};
use crate::tap::{Passed, Seen, Tap};
use crate::upstream::{BodyBroken, UpstreamBody};

/// The largest answer, not a stream, that is looked into. What is larger passes, and is charged at the most.
const MOST_READ: usize = 16 << 20;

/// The body of an answer.
#[derive(Debug)]
pub(super) struct Answer {
    kind: Kind,
    /// Cleared when the answer is over, so that the next request may come.
    busy: Busy,
}

#[derive(Debug)]
enum Kind {
    /// herma's own.
    Whole(Bytes),
    /// An upstream's, as it comes.
    Passing(Box<Passing>),
}

/// An answer under way.
#[derive(Debug)]
pub(super) struct Passing {
    flight: Flight,
    body: UpstreamBody,
    status: u16,
    reader: Option<Reader>,
    hash: Sha256,
    is_over: bool,
}

/// Reads what passes.
#[derive(Debug)]
enum Reader {
    Stream(Box<Tap>),
    Whole { parts: Vec<Bytes>, size: usize },
}

/// What an answer came to.
struct Read {
    ended: Ended,
    cost: Cost,
    answered: Option<String>,
    stop: Option<String>,
    reason: Option<&'static str>,
}

impl Answer {
    pub(super) fn whole(body: Bytes, busy: Busy) -> Self {
        Self { kind: Kind::Whole(body), busy }
    }

    pub(super) fn passing(passing: Passing, busy: Busy) -> Self {
        Self { kind: Kind::Passing(Box::new(passing)), busy }
    }
}

impl Drop for Answer {
    fn drop(&mut self) {
        self.busy.clear();
    }
}

impl Passing {
    pub(super) fn stream(flight: Flight, body: UpstreamBody, status: u16, hide_usage: bool) -> Self {
        let tap = Tap::new(dialect_of(flight.door));
        let tap = if hide_usage { tap.hide_usage_chunk() } else { tap };
        Self::new(flight, body, status, Reader::Stream(Box::new(tap)))
    }

    pub(super) fn not_a_stream(flight: Flight, body: UpstreamBody, status: u16) -> Self {
        Self::new(flight, body, status, Reader::Whole { parts: Vec::new(), size: 0 })
    }

    fn new(flight: Flight, body: UpstreamBody, status: u16, reader: Reader) -> Self {
        Self { flight, body, status, reader: Some(reader), hash: Sha256::new(), is_over: false }
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, BodyBroken>>> {
        while !self.is_over {
            let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
            let passes = match frame {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(chunk) => self.chunk(chunk),
                    Err(_trailers) => continue,
                },
                Some(Err(broken)) => return Poll::Ready(self.broken(broken)),
                None => self.finish(),
            };
            if !passes.is_empty() {
                self.hash.update(&passes);
                let is_all = self.body.is_end_stream() || self.body.size_hint().exact() == Some(0);
                if is_all && !self.is_over {
                    // Nobody may ask for more once all announced bytes were given. (HTTP/2 can say later that it ends.)
                    let rest = self.finish();
                    self.hash.update(&rest);
                    return Poll::Ready(Some(Ok(joined(passes, &rest))));
                }
                return Poll::Ready(Some(Ok(passes)));
            }
        }
        Poll::Ready(None)
    }

    /// What passes of a chunk.
    fn chunk(&mut self, chunk: Bytes) -> Bytes {
        self.flight.first_byte();
        match &mut self.reader {
            None => chunk,
            Some(Reader::Whole { parts, size }) => {
                *size += chunk.len();
                if *size <= MOST_READ {
                    parts.push(chunk.clone());
                } else {
                    parts.clear();
                }
                chunk
            }
            Some(Reader::Stream(tap)) => match tap.feed(&chunk) {
                Passed::All => chunk,
                Passed::Parts { earlier, of_chunk } => match (&*earlier, &*of_chunk) {
                    ([], []) => Bytes::new(),
                    ([], [one]) => chunk.slice(one.clone()),
                    _ => {
                        let mut out = BytesMut::from(&*earlier);
                        for part in of_chunk {
                            out.extend_from_slice(&chunk[part]);
                        }
                        out.freeze()
                    }
                },
            },
        }
    }

    /// The upstream's body is whole. Gives what was still held back.
    fn finish(&mut self) -> Bytes {
        self.is_over = true;
        let (rest, read) = match self.reader.take() {
            None => (Bytes::new(), Read::unread()),
            Some(Reader::Whole { parts, size }) => (Bytes::new(), read_whole(self.flight.door, &parts, size)),
            Some(Reader::Stream(tap)) => {
                let (mut rest, seen) = tap.finish();
                let cost = seen.usage.filter(|_| seen.done).map_or(Cost::Unknown, Cost::Used);
                if !seen.done && !seen.error_event && seen.stop.is_none() {
                    let what = "the upstream ended its stream";
                    rest.extend(told(dialect_of(self.flight.door), "ended_early", what, seen.events));
                }
                let (ended, reason) = match (seen.done, cost) {
                    (_, _) if seen.error_event => (Ended::Failed, Some("error_event")),
                    (true, Cost::Used(_)) => (Ended::Answered, None),
                    (true, _) => (Ended::Uncounted, Some("no_usage")),
                    (false, _) => (Ended::Cut, Some("ended_early")),
                };
                (Bytes::from(rest), Read { ended, cost, answered: seen.model, stop: seen.stop, reason })
            }
        };
        self.end(read, &rest);
        rest
    }

    fn end(&mut self, read: Read, rest: &[u8]) {
        let mut hash = self.hash.clone();
        hash.update(rest);
        self.flight.end(Ending {
            ended: read.ended,
            status: self.status,
            reason: read.reason,
            cost: read.cost,
            response: Some(Digest::from_bytes(hash.finalize().into())),
            answered: read.answered,
            stop: read.stop,
        });
    }

    /// The upstream's body broke off. A stream says so in its own words; any other body is broken off too.
    fn broken(&mut self, broken: BodyBroken) -> Option<Result<Bytes, BodyBroken>> {
        self.is_over = true;
        let (reason, what) = match broken {
            BodyBroken::Cut => ("upstream_cut", "the connection to the upstream broke off"),
            BodyBroken::Idle => ("upstream_idle", "the upstream sent nothing for too long"),
        };
        let Some(Reader::Stream(tap)) = self.reader.take() else {
            self.end(Read { reason: Some(reason), ..Read::cut() }, b"");
            return Some(Err(broken));
        };
        let (rest, seen) = tap.finish();
        let mut out = rest;
        if seen.done {
            // All that the client waits for has come: how the connection ended does not matter.
            let cost = seen.usage.map_or(Cost::Unknown, Cost::Used);
            let ended = if seen.usage.is_some() { Ended::Answered } else { Ended::Uncounted };
            self.end(Read { ended, cost, answered: seen.model, stop: seen.stop, reason: None }, &out);
        } else {
            out.extend(told(dialect_of(self.flight.door), reason, what, seen.events));
            let cut = Read { reason: Some(reason), answered: seen.model, stop: seen.stop, ..Read::cut() };
            self.end(cut, &out);
        }
        (!out.is_empty()).then(|| Ok(Bytes::from(out)))
    }
}

impl Drop for Passing {
    fn drop(&mut self) {
        if self.is_over {
            return;
        }
        // The client left. Where it had all that it waits for, the call is settled; else nobody knows what it cost.
        let seen = match self.reader.take() {
            Some(Reader::Stream(tap)) => tap.finish().1,
            _ => Seen::default(),
        };
        let read = match seen.usage.filter(|_| seen.done && !seen.error_event) {
            Some(usage) => {
                Read { ended: Ended::Answered, cost: Cost::Used(usage), reason: None, ..Read::left() }
            }
            None => Read::left(),
        };
        self.end(Read { answered: seen.model, stop: seen.stop, ..read }, b"");
    }
}

impl Read {
    fn unread() -> Self {
        Self {
            ended: Ended::Uncounted,
            cost: Cost::Unknown,
            answered: None,
            stop: None,
            reason: Some("no_usage"),
        }
    }

    fn left() -> Self {
        let reason = Some("client_left");
        Self { ended: Ended::ClientLeft, cost: Cost::Unknown, answered: None, stop: None, reason }
    }

    fn cut() -> Self {
        Self { ended: Ended::Cut, cost: Cost::Unknown, answered: None, stop: None, reason: None }
    }
}

fn read_whole(door: Door, parts: &[Bytes], size: usize) -> Read {
    if size > MOST_READ {
        return Read { reason: Some("too_large_to_read"), ..Read::unread() };
    }
    let dialect: Dialect = dialect_of(door);
    let answer = match parts {
        [one] => answered(dialect, one),
        parts => answered(dialect, &parts.concat()),
    };
    match answer {
        _ if door == Door::CountTokens => {
            Read { ended: Ended::Answered, cost: Cost::NoTokens, answered: None, stop: None, reason: None }
        }
        Err(_) => Read { reason: Some("not_an_answer"), ..Read::unread() },
        Ok(said) => {
            let (cost, ended, reason) = match said.usage {
                Some(usage) => (Cost::Used(usage), Ended::Answered, None),
                None => (Cost::Unknown, Ended::Uncounted, Some("no_usage")),
            };
            Read { ended, cost, answered: said.model, stop: said.stop, reason }
        }
    }
}

/// What tells the client of a stream that it is not whole. A line that was cut has to end before it.
fn told(dialect: Dialect, reason: &'static str, what: &str, events: u64) -> Vec<u8> {
    let message =
        format!("{what} in the middle of the answer; herma does not ask again, because it was charged");
    let event = ApiError::new(502, message).with_code(reason).event(dialect, events);
    [b"\n\n", event.as_bytes()].concat()
}

fn joined(first: Bytes, second: &[u8]) -> Bytes {
    if second.is_empty() {
        return first;
    }
    let mut both = BytesMut::from(&*first);
    both.extend_from_slice(second);
    both.freeze()
}

impl Body for Answer {
    type Data = Bytes;
    type Error = BodyBroken;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyBroken>>> {
        match &mut self.get_mut().kind {
            Kind::Whole(bytes) if bytes.is_empty() => Poll::Ready(None),
            Kind::Whole(bytes) => Poll::Ready(Some(Ok(Frame::data(std::mem::take(bytes))))),
            Kind::Passing(passing) => {
                passing.poll(cx).map(|passed| passed.map(|bytes| bytes.map(Frame::data)))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.kind {
            Kind::Whole(bytes) => bytes.is_empty(),
            Kind::Passing(passing) => passing.is_over,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.kind {
            Kind::Whole(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Kind::Passing(passing) => match passing.reader {
                Some(Reader::Whole { .. }) => passing.body.size_hint(),
                _ => SizeHint::default(),
            },
        }
    }
}
