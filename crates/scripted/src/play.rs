//! From a reply to the answer that is sent, with its faults.

use herma_core::units::Span;

use crate::answer::{Answer, StreamStep, api_error, headers};
use crate::render::{self, Event, Place};
use crate::reply::Reply;
use crate::turn::{Cut, Delay, Fault, Forever, Turn};
use herma_dialect::{Dialect, ModelRequest};

const JSON: &str = "application/json";
const EVENTS: &str = "text/event-stream; charset=utf-8";

/// How often a stream that never ends says something, where the turn does not say.
const EVERY: Span = Span(50);

/// The answer of `turn`.
pub(super) fn play(
    dialect: Dialect,
    request: &ModelRequest,
    turn: &Turn,
    fault: Option<&Fault>,
    reply: &Reply,
) -> Answer {
    let after = turn.delay.first_byte;
    match fault {
        Some(Fault::Error(error)) => Answer::error(dialect, error, &reply.ids, after),
        Some(Fault::LateError(error)) if !request.stream => Answer::error(dialect, error, &reply.ids, after),
        _ if request.stream => streamed(dialect, request, turn, fault, reply),
        _ => whole(dialect, turn.delay, fault, reply),
    }
}

fn whole(dialect: Dialect, delay: Delay, fault: Option<&Fault>, reply: &Reply) -> Answer {
    let mut body = render::whole(dialect, reply);
    let headers = headers(dialect, &reply.ids, JSON);
    let after = delay.first_byte;
    let steps = match fault {
        Some(Fault::Cut(cut)) => {
            body.truncate(match cut {
                Cut::AfterBytes(bytes) => *bytes,
                Cut::AfterEvents(_) => body.len() / 2,
            });
            vec![StreamStep::Bytes(body), StreamStep::Cut]
        }
        Some(Fault::Forever(forever)) => {
            // Space before JSON means nothing, so that this is a body that is still to come.
            let bytes = if *forever == Forever::Silence { Vec::new() } else { b" ".to_vec() };
            vec![StreamStep::Forever { every: every(delay), bytes }]
        }
        Some(Fault::Malformed) => {
            body.truncate(body.len() / 2);
            return Answer::Whole { headers, body, after };
        }
        None | Some(Fault::Error(_) | Fault::LateError(_)) => return Answer::Whole { headers, body, after },
    };
    Answer::Stream { headers, first_byte_after: after, steps }
}

fn streamed(
    dialect: Dialect,
    request: &ModelRequest,
    turn: &Turn,
    fault: Option<&Fault>,
    reply: &Reply,
) -> Answer {
    let events = render::events(dialect, reply, turn.chunk, request);
    let mut sent: Vec<Vec<u8>> = Vec::with_capacity(events.len() + 1);
    let mut last = None;
    match fault {
        Some(Fault::LateError(error)) => {
            sent.extend(before_the_end(events));
            sent.push(render::late_error(dialect, reply, sent.len(), &api_error(error)));
        }
        Some(Fault::Forever(forever)) => {
            sent.extend(before_the_end(events));
            let bytes = match forever {
                Forever::Text => render::more_text(dialect, reply, sent.len()),
                Forever::Ping => render::ping(dialect),
                Forever::Silence => Vec::new(),
            };
            last = Some(StreamStep::Forever { every: every(turn.delay), bytes });
        }
        Some(Fault::Malformed) => {
            let first_piece = events.iter().position(|event| event.place == Place::Piece);
            let at = 1 + first_piece.unwrap_or_default();
            sent.extend(events.into_iter().map(|event| event.bytes));
            sent.insert(at, render::malformed(dialect));
        }
        Some(Fault::Cut(cut)) => {
            sent.extend(events.into_iter().map(|event| event.bytes));
            cut_off(&mut sent, *cut);
            last = Some(StreamStep::Cut);
        }
        None | Some(Fault::Error(_)) => sent.extend(events.into_iter().map(|event| event.bytes)),
    }
    Answer::Stream {
        headers: headers(dialect, &reply.ids, EVENTS),
        first_byte_after: turn.delay.first_byte,
        steps: spaced(sent, turn.delay.between).chain(last).collect(),
    }
}

/// All events up to those that only end something.
fn before_the_end(mut events: Vec<Event>) -> impl Iterator<Item = Vec<u8>> {
    let open = events.iter().rposition(|event| event.place != Place::Closing).map_or(0, |at| at + 1);
    events.truncate(open);
    events.into_iter().map(|event| event.bytes)
}

fn cut_off(sent: &mut Vec<Vec<u8>>, cut: Cut) {
    match cut {
        Cut::AfterEvents(events) => sent.truncate(events),
        Cut::AfterBytes(mut left) => {
            sent.retain_mut(|bytes| {
                bytes.truncate(left);
                left -= bytes.len();
                !bytes.is_empty()
            });
        }
    }
}

fn spaced(sent: Vec<Vec<u8>>, between: Span) -> impl Iterator<Item = StreamStep> {
    sent.into_iter().enumerate().flat_map(move |(at, bytes)| {
        let wait = (at > 0 && between > Span(0)).then_some(StreamStep::Wait(between));
        wait.into_iter().chain([StreamStep::Bytes(bytes)])
    })
}

fn every(delay: Delay) -> Span {
    if delay.between > Span(0) { delay.between } else { EVERY }
}
