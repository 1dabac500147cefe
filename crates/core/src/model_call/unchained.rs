//! A call before it has its place in the chain.

use jiff::Timestamp;

use super::{Attempt, Charge, Ended, Endpoint, ModelCall, TokensUsed};
use crate::Digest;
use crate::budget::LARGEST;

/// No text of a record is longer than this many bytes. Clients and upstreams write some of them.
pub const LONGEST_TEXT: usize = 256;

/// A [`ModelCall`] without what its place in the chain decides: `call`, `prev`, `run` and `seq`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unchained {
    /// The model that says it answered.
    pub answered: Option<String>,
    /// The model that the client asked for; empty where the request could not be read.
    pub asked: String,
    /// Every upstream that was tried, in order.
    pub attempts: Vec<Attempt>,
    /// Its charge.
    pub charged: Charge,
    /// Which API was called.
    pub endpoint: Endpoint,
    /// How it ended.
    pub ended: Ended,
    /// Microseconds until the first byte of the answer.
    pub first_byte_us: Option<u64>,
    /// Microseconds until its end.
    pub latency_us: u64,
    /// Why it was refused or failed, as a code for programs.
    pub reason: Option<String>,
    /// The digest of the request's body as the client sent it.
    pub request: Digest,
    /// The digest of the answer's body as the client got it.
    pub response: Option<Digest>,
    /// The changes of herma to the request, by name.
    pub rewrites: Vec<String>,
    /// Whether it is charged at what it cost.
    pub settled: bool,
    /// The status that the client got; 0 if it left before there was one.
    pub status: u16,
    /// Why the answer ended, in the upstream's word.
    pub stop: Option<String>,
    /// Whether the answer was asked for as a stream.
    pub stream: bool,
    /// When it came in.
    pub time: Timestamp,
    /// How many calls of its client's tools the answer asks for.
    pub tool_calls: u64,
    /// The tokens that it used, if known.
    pub used: Option<TokensUsed>,
}

impl Unchained {
    /// Every text that somebody else than herma wrote: clients, upstreams, and who configured those. Each is as long as it
    /// will be in the record.
    pub fn texts_of_others(&mut self) -> impl Iterator<Item = &mut String> {
        let attempts =
            self.attempts.iter_mut().flat_map(|attempt| [&mut attempt.model, &mut attempt.upstream]);
        let all =
            [&mut self.asked].into_iter().chain(&mut self.answered).chain(&mut self.stop).chain(attempts);
        all.map(|text| {
            *text = short(std::mem::take(text));
            text
        })
    }

    /// The record at its place. Numbers that JSON cannot say exactly are the largest that it can, and long texts are cut:
    /// neither a client nor an upstream decides how large a record is.
    #[must_use]
    pub fn at(self, seq: u64, prev: Digest, run: &str, call: Option<u64>) -> ModelCall {
        ModelCall {
            answered: self.answered.map(short),
            asked: short(self.asked),
            attempts: self.attempts.into_iter().map(bounded).collect(),
            call,
            charged: self.charged.bounded(),
            endpoint: self.endpoint,
            ended: self.ended,
            first_byte_us: self.first_byte_us.map(exact),
            latency_us: exact(self.latency_us),
            prev,
            reason: self.reason.map(short),
            request: self.request,
            response: self.response,
            rewrites: self.rewrites,
            run: run.to_owned(),
            seq,
            settled: self.settled,
            status: self.status,
            stop: self.stop.map(short),
            stream: self.stream,
            time: self.time,
            tool_calls: exact(self.tool_calls),
            used: self.used.map(|used| TokensUsed {
                cache_write: exact(used.cache_write),
                cached_input: exact(used.cached_input),
                input: exact(used.input),
                output: exact(used.output),
                reasoning: exact(used.reasoning),
            }),
        }
    }
}

fn bounded(attempt: Attempt) -> Attempt {
    Attempt {
        charged: attempt.charged.bounded(),
        model: short(attempt.model),
        outcome: short(attempt.outcome),
        upstream: short(attempt.upstream),
        ..attempt
    }
}

fn exact(number: u64) -> u64 {
    number.min(LARGEST)
}

/// The text, or its start and a sign that it was longer.
fn short(mut text: String) -> String {
    const MARK: &str = "…";
    if text.len() > LONGEST_TEXT {
        text.truncate(text.floor_char_boundary(LONGEST_TEXT - MARK.len()));
        text.push_str(MARK);
    }
    text
}
