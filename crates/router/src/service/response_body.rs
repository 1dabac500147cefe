//! Response bodies. The upstream's bytes are relayed as they come, and the call ends with them. A stream is parsed, hashed
//! and counted on its way, any other body after its last byte.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use herma_core::model_call::Ended;
use herma_dialect::endpoint::dialect_of;
use herma_dialect::tap::{Passed, StreamSummary, Tap};
use herma_dialect::{ApiError, Dialect};
use http_body::{Body, Frame, SizeHint};
use sha2::{Digest as _, Sha256};

use super::in_flight::{Cost, InFlightCall};
use super::reason::Reason;
use super::whole::{Parts, Read, WholeAnswer, end};
use crate::upstream::{BodyBroken, UpstreamBody};

/// The body of a response.
#[derive(Debug)]
pub(super) enum ResponseBody {
    /// The router's own.
    Whole(Bytes),
    /// An upstream's, as it comes.
    Relayed(Box<RelayedBody>),
}

/// The relayed body of an upstream's response.
#[derive(Debug)]
pub(super) struct RelayedBody {
    /// `None` once the call has ended.
    call: Option<(Box<InFlightCall>, Reader)>,
    dialect: Dialect,
    is_stream: bool,
    body: UpstreamBody,
    status: u16,
}

/// Inspects the relayed bytes.
#[derive(Debug)]
enum Reader {
    Stream { tap: Box<Tap>, hash: Sha256 },
    Whole(Parts),
}

impl RelayedBody {
    pub(super) fn stream(
        in_flight: Box<InFlightCall>,
        body: UpstreamBody,
        status: u16,
        hide_usage: bool,
    ) -> Self {
        let tap = Tap::new(dialect_of(in_flight.endpoint));
        let tap = if hide_usage { tap.hide_usage_chunk() } else { tap };
        Self::new(in_flight, body, status, Reader::Stream { tap: Box::new(tap), hash: Sha256::new() })
    }

    pub(super) fn whole(in_flight: Box<InFlightCall>, body: UpstreamBody, status: u16) -> Self {
        let mut relayed = Self::new(in_flight, body, status, Reader::Whole(Parts::default()));
        if relayed.body.is_end_stream() || relayed.body.size_hint().exact() == Some(0) {
            // hyper does not poll a body that it knows to be empty.
            let _ = relayed.finish();
        }
        relayed
    }

    fn new(in_flight: Box<InFlightCall>, body: UpstreamBody, status: u16, reader: Reader) -> Self {
        let is_stream = matches!(reader, Reader::Stream { .. });
        Self {
            dialect: dialect_of(in_flight.endpoint),
            call: Some((in_flight, reader)),
            is_stream,
            body,
            status,
        }
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
                    // hyper may not poll again after the announced length. (HTTP/2 can end later than that.)
                    let rest = self.finish();
                    return Poll::Ready(Some(Ok(joined(passes, &rest))));
                }
                return Poll::Ready(Some(Ok(passes)));
            }
        }
        Poll::Ready(None)
    }

    /// The part of a chunk that the client gets.
    fn chunk(&mut self, chunk: Bytes) -> Bytes {
        let Some((in_flight, reader)) = &mut self.call else { return Bytes::new() };
        in_flight.first_byte();
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

    /// The upstream's body is complete. Gives the bytes that were held back.
    fn finish(&mut self) -> Bytes {
        let Some((in_flight, reader)) = self.call.take() else { return Bytes::new() };
        match reader {
            Reader::Whole(parts) => {
                WholeAnswer { in_flight, status: self.status, parts }.pass_on();
                Bytes::new()
            }
            Reader::Stream { tap, mut hash } => {
                let (mut rest, seen) = tap.finish();
                let usage = seen.usage.filter(|_| seen.done);
                let (cost, uncounted) = Cost::reported(usage, seen.doubt, in_flight.expects_output);
                if !seen.done && !seen.error_event && seen.stop.is_none() {
                    let what = "the upstream ended its stream";
                    rest.extend(error_event(self.dialect, Reason::EndedEarly, what, seen.events));
                }
                let (ended, reason) = match (seen.done, cost) {
                    (_, _) if seen.error_event => (Ended::Failed, Some(Reason::ErrorEvent)),
                    (true, Cost::Used(_)) => (Ended::Answered, None),
                    (true, _) => (Ended::Uncounted, uncounted),
                    (false, _) => (Ended::Cut, Some(Reason::EndedEarly)),
                };
                hash.update(&rest);
                let StreamSummary { model: answered, stop, tool_calls, .. } = seen;
                let read = Read { ended, cost, answered, stop, tool_calls, reason };
                end(in_flight, self.status, read, hash);
                Bytes::from(rest)
            }
        }
    }

    /// The upstream's body broke off. A stream ends with an error event; any other body is broken off too.
    fn broken(&mut self, broken: BodyBroken) -> Option<Result<Bytes, BodyBroken>> {
        let (in_flight, reader) = self.call.take()?;
        let (reason, what) = match broken {
            BodyBroken::Cut => (Reason::UpstreamCut, "the connection to the upstream broke off"),
            BodyBroken::Idle => (Reason::UpstreamIdle, "the upstream sent nothing for too long"),
        };
        let (tap, mut hash) = match reader {
            Reader::Whole(parts) => {
                let read = Read { reason: Some(reason), ..Read::cut() };
                end(in_flight, self.status, read, parts.hashed());
                return Some(Err(broken));
            }
            Reader::Stream { tap, hash } => (tap, hash),
        };
        let (mut out, seen) = tap.finish();
        let read = if seen.done {
            // The stream is complete: how the connection ended does not matter.
            let (cost, reason) = Cost::reported(seen.usage, seen.doubt, in_flight.expects_output);
            let ended = if cost == Cost::Unknown { Ended::Uncounted } else { Ended::Answered };
            Read { ended, cost, reason, ..Read::cut() }
        } else {
            out.extend(error_event(self.dialect, reason, what, seen.events));
            Read { reason: Some(reason), ..Read::cut() }
        };
        let StreamSummary { model: answered, stop, tool_calls, .. } = seen;
        let read = Read { answered, stop, tool_calls, ..read };
        hash.update(&out);
        end(in_flight, self.status, read, hash);
        (!out.is_empty()).then(|| Ok(Bytes::from(out)))
    }
}

impl Drop for RelayedBody {
    fn drop(&mut self) {
        let Some((in_flight, reader)) = self.call.take() else { return };
        // The client left. After the end of the stream the cost is known; before, it is not.
        let (seen, hash) = match reader {
            Reader::Stream { tap, hash } => (tap.finish().1, hash),
            Reader::Whole(parts) => (StreamSummary::default(), parts.hashed()),
        };
        let usage = seen.usage.filter(|_| seen.done && !seen.error_event);
        let read = match Cost::reported(usage, seen.doubt, in_flight.expects_output) {
            (cost @ Cost::Used(_), _) => Read { ended: Ended::Answered, cost, reason: None, ..Read::left() },
            (_, reason) if usage.is_some() => Read { reason, ..Read::left() },
            _ => Read::left(),
        };
        let StreamSummary { model: answered, stop, tool_calls, .. } = seen;
        end(in_flight, self.status, Read { answered, stop, tool_calls, ..read }, hash);
    }
}

/// The event that tells the client of an incomplete stream. It ends a line that was cut.
fn error_event(dialect: Dialect, reason: Reason, what: &str, events: u64) -> Vec<u8> {
    let message =
        format!("{what} in the middle of the answer; herma does not ask again, because it was charged");
    let event = ApiError::new(502, message).with_code(reason.code()).event(dialect, events);
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

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = BodyBroken;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyBroken>>> {
        match self.get_mut() {
            Self::Whole(bytes) if bytes.is_empty() => Poll::Ready(None),
            Self::Whole(bytes) => Poll::Ready(Some(Ok(Frame::data(std::mem::take(bytes))))),
            Self::Relayed(relayed) => {
                relayed.poll(cx).map(|passed| passed.map(|bytes| bytes.map(Frame::data)))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Whole(bytes) => bytes.is_empty(),
            Self::Relayed(relayed) => relayed.call.is_none(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Self::Relayed(relayed) if relayed.is_stream => SizeHint::default(),
            Self::Relayed(relayed) => relayed.body.size_hint(),
        }
    }
}
