//! One turn of a script: its content, its speed and its fault.

mod fields;

use std::num::{NonZeroU32, NonZeroUsize};

use herma_core::units::Span;
use serde::Deserialize;

use crate::call::Call;
use fields::TurnFields;

/// How many characters a piece of a stream has, unless the turn says otherwise.
const CHUNK: NonZeroUsize = NonZeroUsize::MIN.saturating_add(23);

/// One answer.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(try_from = "TurnFields")]
pub struct Turn {
    /// The content.
    pub content: Content,
    /// Its usage; computed from the bytes if the script does not set it.
    pub usage: Option<Used>,
    /// The stop reason, if it is not the usual one.
    pub stop: Option<Stop>,
    /// How long everything takes.
    pub delay: Delay,
    /// How many characters a piece of a stream has.
    pub chunk: NonZeroUsize,
    /// The fault.
    pub fault: Option<Fault>,
    /// How many attempts meet the fault; those after it get the content. Without it every attempt meets it.
    pub times: Option<NonZeroU32>,
}

impl Turn {
    /// A turn that only says something.
    pub(super) fn saying(text: &str) -> Self {
        Self {
            content: Content { say: Some(text.to_owned()), ..Content::default() },
            usage: None,
            stop: None,
            delay: Delay::default(),
            chunk: CHUNK,
            fault: None,
            times: None,
        }
    }

    /// The fault for a request that was made `attempt` times before.
    pub(super) fn fault_at(&self, attempt: u32) -> Option<&Fault> {
        let over = self.times.is_some_and(|times| attempt >= times.get());
        self.fault.as_ref().filter(|_| !over)
    }

    /// The usual number of characters in a piece.
    pub(super) fn usual_chunk() -> NonZeroUsize {
        CHUNK
    }
}

/// The content of a turn, in the order in which it is sent. Without any of it the answer is empty.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Content {
    /// Reasoning.
    pub think: Option<String>,
    /// Text.
    pub say: Option<String>,
    /// Text that the API marks as a refusal.
    pub refuse: Option<String>,
    /// Tool calls, all at once.
    pub calls: Vec<Call>,
}

/// The usage of a turn, in tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(try_from = "UsedFields")]
pub struct Used {
    /// All input, with what was cached.
    pub input: u64,
    /// All output, with reasoning.
    pub output: u64,
    /// Input that was read from a cache.
    pub cached: u64,
    /// Input that was written to a cache.
    pub cache_write: u64,
    /// Output that was reasoning.
    pub reasoning: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct UsedFields {
    input: u64,
    output: u64,
    #[serde(default)]
    cached: u64,
    #[serde(default)]
    cache_write: u64,
    #[serde(default)]
    reasoning: u64,
}

impl TryFrom<UsedFields> for Used {
    type Error = String;

    fn try_from(fields: UsedFields) -> Result<Self, String> {
        let UsedFields { input, output, cached, cache_write, reasoning } = fields;
        if cached.checked_add(cache_write).is_none_or(|sum| sum > input) {
            return Err("`cached` and `cache_write` are parts of `input`: together they are at most as much"
                .to_owned());
        }
        if reasoning > output {
            return Err("`reasoning` is a part of `output`: it is at most as much".to_owned());
        }
        if input.checked_add(output).is_none() {
            return Err("`input` and `output` are too many tokens to add up".to_owned());
        }
        Ok(Self { input, output, cached, cache_write, reasoning })
    }
}

/// Why an answer ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stop {
    /// It is complete.
    End,
    /// It waits for the results of its tool calls.
    Tools,
    /// The output maximum was reached.
    Length,
    /// A filter held it back.
    ContentFilter,
    /// The model refused.
    Refusal,
}

/// How long an answer takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delay {
    /// Until its first byte.
    pub first_byte: Span,
    /// Between two events of a stream.
    pub between: Span,
}

impl Default for Delay {
    fn default() -> Self {
        Self { first_byte: Span(0), between: Span(0) }
    }
}

/// The fault of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// An HTTP error instead of it.
    Error(HttpError),
    /// An error event where the stream would end; an HTTP error where nothing is streamed.
    LateError(HttpError),
    /// The connection is cut.
    Cut(Cut),
    /// One event of the stream, or the second half of the body, is not JSON.
    Malformed,
    /// The stream never ends.
    Forever(Forever),
}

/// An HTTP error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpError {
    /// Its status, from 400 to 599.
    pub status: u16,
    /// Its message.
    pub message: Option<String>,
    /// When the client may come again.
    pub retry_after: Option<Span>,
}

/// Where a connection is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cut {
    /// After so many bytes of the body; also after none.
    AfterBytes(usize),
    /// After so many events of a stream; where nothing is streamed, in the middle of the body.
    AfterEvents(usize),
}

/// The repeated part of a stream that never ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Forever {
    /// More text.
    Text,
    /// Signs of life without content.
    Ping,
    /// Nothing at all.
    Silence,
}
