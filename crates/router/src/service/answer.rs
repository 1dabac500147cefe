//! The body of an answer. What an upstream sends passes as it comes, and the call ends with it. A stream is read, hashed
//! and counted on its way; what is no stream, when all of it has passed.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use herma_core::model_call::Ended;
use http_body::{Body, Frame, SizeHint};
use sha2::{Digest as _, Sha256};

use super::flight::{Cost, Flight};
use super::whole::{Parts, Read, WholeAnswer, end};
use crate::dialect::{ApiError, Dialect};
use crate::door::dialect_of;
use crate::tap::{Passed, Seen, Tap};
use crate::upstream::{BodyBroken, UpstreamBody};

/// The body of an answer.
#[derive(Debug)]
pub(super) enum Answer {
    /// herma's own.
    Whole(Bytes),
    /// An upstream's, as it comes.
    Passing(Box<Passing>),
}

/// An answer under way.
#[derive(Debug)]
pub(super) struct Passing {
    /// None once the call is over.
    call: Option<(Box<Flight>, Reader)>,
    dialect: Dialect,
    is_stream: bool,
    body: UpstreamBody,
    status: u16,
}

/// Looks at what passes.
#[derive(Debug)]
enum Reader {
    Stream { tap: Box<Tap>, hash: Sha256 },
    Whole(Parts),
}

impl Passing {
    pub(super) fn stream(flight: Box<Flight>, body: UpstreamBody, status: u16, hide_usage: bool) -> Self {
        let tap = Tap::new(dialect_of(flight.door));
        let tap = if hide_usage { tap.hide_usage_chunk() } else { tap };
        Self::new(flight, body, status, Reader::Stream { tap: Box::new(tap), hash: Sha256::new() })
    }

    pub(super) fn whole(flight: Box<Flight>, body: UpstreamBody, status: u16) -> Self {
        Self::new(flight, body, status, Reader::Whole(Parts::default()))
    }

    fn new(flight: Box<Flight>, body: UpstreamBody, status: u16, reader: Reader) -> Self {
        let is_stream = matches!(reader, Reader::Stream { .. });
        Self { dialect: dialect_of(flight.door), call: Some((flight, reader)), is_stream, body, status }
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, BodyBroken>>> {
        while self.call.is_some() {
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
                let is_all = self.body.is_end_stream() || self.body.size_hint().exact() == Some(0);
                if is_all && self.call.is_some() {
                    // Nobody may ask for more once all announced bytes were given. (HTTP/2 can say later that it ends.)
                    let rest = self.finish();
                    return Poll::Ready(Some(Ok(joined(passes, &rest))));
                }
                return Poll::Ready(Some(Ok(passes)));
            }
        }
        Poll::Ready(None)
    }

    /// What passes of a chunk.
    fn chunk(&mut self, chunk: Bytes) -> Bytes {
        let Some((flight, reader)) = &mut self.call else { return Bytes::new() };
        flight.first_byte();
        match reader {
            Reader::Whole(parts) => {
                parts.add(&chunk);
                chunk
            }
            Reader::Stream { tap, hash } => {
                let passes = match tap.feed(&chunk) {
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
                };
                hash.update(&passes);
                passes
            }
        }
    }

    /// The upstream's body is whole. Gives what was still held back.
    fn finish(&mut self) -> Bytes {
        let Some((flight, reader)) = self.call.take() else { return Bytes::new() };
        match reader {
            Reader::Whole(parts) => {
                WholeAnswer { flight, status: self.status, parts }.pass_on();
                Bytes::new()
            }
            Reader::Stream { tap, mut hash } => {
                let (mut rest, seen) = tap.finish();
                let usage = seen.usage.filter(|_| seen.done);
                let (cost, uncounted) = Cost::reported(usage, seen.doubt, flight.expects_output);
                if !seen.done && !seen.error_event && seen.stop.is_none() {
                    let what = "the upstream ended its stream";
                    rest.extend(told(self.dialect, "ended_early", what, seen.events));
                }
                let (ended, reason) = match (seen.done, cost) {
                    (_, _) if seen.error_event => (Ended::Failed, Some("error_event")),
                    (true, Cost::Used(_)) => (Ended::Answered, None),
                    (true, _) => (Ended::Uncounted, uncounted),
                    (false, _) => (Ended::Cut, Some("ended_early")),
                };
                hash.update(&rest);
                let Seen { model: answered, stop, tool_calls, .. } = seen;
                let read = Read { ended, cost, answered, stop, tool_calls, reason };
                end(flight, self.status, read, hash);
                Bytes::from(rest)
            }
        }
    }

    /// The upstream's body broke off. A stream says so in its own words; any other body is broken off too.
    fn broken(&mut self, broken: BodyBroken) -> Option<Result<Bytes, BodyBroken>> {
        let (flight, reader) = self.call.take()?;
        let (reason, what) = match broken {
            BodyBroken::Cut => ("upstream_cut", "the connection to the upstream broke off"),
            BodyBroken::Idle => ("upstream_idle", "the upstream sent nothing for too long"),
        };
        let (tap, mut hash) = match reader {
            Reader::Whole(parts) => {
                let read = Read { reason: Some(reason), ..Read::cut() };
                end(flight, self.status, read, parts.hashed());
                return Some(Err(broken));
            }
            Reader::Stream { tap, hash } => (tap, hash),
        };
        let (mut out, seen) = tap.finish();
        let read = if seen.done {
            // All that the client waits for has come: how the connection ended does not matter.
            let (cost, reason) = Cost::reported(seen.usage, seen.doubt, flight.expects_output);
            let ended = if cost == Cost::Unknown { Ended::Uncounted } else { Ended::Answered };
            Read { ended, cost, reason, ..Read::cut() }
        } else {
            out.extend(told(self.dialect, reason, what, seen.events));
            Read { reason: Some(reason), ..Read::cut() }
        };
        let Seen { model: answered, stop, tool_calls, .. } = seen;
        let read = Read { answered, stop, tool_calls, ..read };
        hash.update(&out);
        end(flight, self.status, read, hash);
        (!out.is_empty()).then(|| Ok(Bytes::from(out)))
    }
}

impl Drop for Passing {
    fn drop(&mut self) {
        let Some((flight, reader)) = self.call.take() else { return };
        // The client left. Where it had all that it waits for, the call is settled; else nobody knows what it cost.
        let (seen, hash) = match reader {
            Reader::Stream { tap, hash } => (tap.finish().1, hash),
            Reader::Whole(parts) => (Seen::default(), parts.hashed()),
        };
        let usage = seen.usage.filter(|_| seen.done && !seen.error_event);
        let read = match Cost::reported(usage, seen.doubt, flight.expects_output) {
            (cost @ Cost::Used(_), _) => Read { ended: Ended::Answered, cost, reason: None, ..Read::left() },
            (_, reason) if usage.is_some() => Read { reason, ..Read::left() },
            _ => Read::left(),
        };
        let Seen { model: answered, stop, tool_calls, .. } = seen;
        end(flight, self.status, Read { answered, stop, tool_calls, ..read }, hash);
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
        match self.get_mut() {
            Self::Whole(bytes) if bytes.is_empty() => Poll::Ready(None),
            Self::Whole(bytes) => Poll::Ready(Some(Ok(Frame::data(std::mem::take(bytes))))),
            Self::Passing(passing) => {
                passing.poll(cx).map(|passed| passed.map(|bytes| bytes.map(Frame::data)))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Whole(bytes) => bytes.is_empty(),
            Self::Passing(passing) => passing.call.is_none(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Self::Passing(passing) if passing.is_stream => SizeHint::default(),
            Self::Passing(passing) => passing.body.size_hint(),
        }
    }
}
