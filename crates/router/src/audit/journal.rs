//! `calls-begun`: what is about to be asked of an upstream, and what that can cost at most.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use herma_core::model_call::Endpoint;
use herma_core::{Digest, Timestamp};
use serde::{Deserialize, Serialize};

use super::{Ended, Unchained};
use crate::budget::Amount;

/// The name of the file.
pub const CALLS_BEGUN: &str = "calls-begun";

/// No model's name is noted beyond this many bytes. A record holds less of it, with a sign that it was longer.
const LONGEST_NAME: usize = 300;

/// The known facts of a call when it begins.
#[derive(Clone, Copy, Debug)]
pub struct Beginning<'a> {
    /// The model that the client asked for.
    pub asked: &'a str,
    /// Which API was called.
    pub endpoint: Endpoint,
    /// The digest of the request's body as the client sent it.
    pub request: Digest,
    /// Whether the answer was asked for as a stream.
    pub stream: bool,
    /// When it came in.
    pub time: Timestamp,
}

/// One line.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub(super) enum Note<'a> {
    /// A call is about to be made.
    Began {
        asked: Cow<'a, str>,
        call: u64,
        #[serde(rename = "door")]
        endpoint: Endpoint,
        most: Amount,
        request: Digest,
        stream: bool,
        time: Timestamp,
    },
    /// It is about to be made once more.
    More { call: u64, most: Amount },
}

impl<'a> Note<'a> {
    pub(super) fn began(call: u64, most: Amount, beginning: &Beginning<'a>) -> Self {
        let Beginning { asked, endpoint, request, stream, time } = *beginning;
        let asked = Cow::Borrowed(&asked[..asked.floor_char_boundary(LONGEST_NAME)]);
        Self::Began { asked, call, endpoint, most: most.bounded(), request, stream, time }
    }

    /// Appends the line, without its newline.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        // A vector takes everything, and a note can always be written.
        let _ = serde_json::to_writer(out, self);
    }
}

/// The calls in the file.
#[derive(Debug, Default)]
pub(super) struct Noted {
    calls: BTreeMap<u64, Unchained>,
}

impl Noted {
    /// Reads one line without its newline.
    pub(super) fn take(&mut self, line: &[u8]) -> Result<(), String> {
        match serde_json::from_slice(line).map_err(|e| format!("not a note of a call: {e}"))? {
            Note::Began { asked, call, endpoint, most, request, stream, time } => {
                let interrupted = Unchained {
                    answered: None,
                    asked: asked.into_owned(),
                    attempts: Vec::new(),
                    charged: most,
                    endpoint,
                    ended: Ended::Interrupted,
                    first_byte_us: None,
                    latency_us: 0,
                    reason: Some("interrupted".to_owned()),
                    request,
                    response: None,
                    rewrites: Vec::new(),
                    settled: false,
                    status: 0,
                    stop: None,
                    stream,
                    time,
                    tool_calls: 0,
                    used: None,
                };
                if self.calls.insert(call, interrupted).is_some() {
                    return Err(format!("call {call} began twice"));
                }
            }
            Note::More { call, most } => {
                let call = self.calls.get_mut(&call).ok_or_else(|| format!("call {call} never began"))?;
                call.charged = call.charged.plus(most);
            }
        }
        Ok(())
    }

    /// The call has a record.
    pub(super) fn ended(&mut self, call: u64) {
        self.calls.remove(&call);
    }

    /// Only these calls are of interest.
    pub(super) fn keep(&mut self, calls: &BTreeSet<u64>) {
        self.calls.retain(|number, _| calls.contains(number));
    }

    /// The calls without a record.
    pub(super) fn numbers(&self) -> impl Iterator<Item = u64> {
        self.calls.keys().copied()
    }

    /// The first number above all that are in the file.
    pub(super) fn next_number(&self) -> u64 {
        self.calls.last_key_value().map_or(0, |(last, _)| last + 1)
    }

    /// The records of calls that began and have none.
    pub(super) fn interrupted(self) -> impl Iterator<Item = (u64, Unchained)> {
        self.calls.into_iter()
    }
}
