//! Reads a stream while it is relayed: every byte goes to the client as it arrives.

mod choices;
mod events;
mod held;
mod lines;

use std::ops::Range;

use events::Events;
use held::Held;
use lines::{Lines, Signal};

use crate::dialect::Dialect;
use crate::usage::{Doubt, Usage};

/// An event with more bytes than this passes, but is not looked into.
pub const MAX_EVENT: usize = 1 << 20;

/// Reads one stream of server-sent events, in whatever chunks it comes.
#[derive(Debug)]
pub struct Tap {
    lines: Lines,
    events: Events,
    held: Option<Held>,
}

/// The part of a chunk that goes to the client now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Passed {
    /// The chunk as it is.
    All,
    /// Bytes of earlier chunks that were held, then these parts of the chunk, in order.
    Parts {
        /// Bytes of earlier chunks that were held.
        earlier: Vec<u8>,
        /// Which bytes of the chunk.
        of_chunk: Vec<Range<usize>>,
    },
}

/// The summary of a stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StreamSummary {
    /// The model that answered.
    pub model: Option<String>,
    /// The last usage in the stream. It is final only if the stream is `done`.
    pub usage: Option<Usage>,
    /// Why the usage is not believed, if it is not.
    pub doubt: Option<Doubt>,
    /// The stop reason, as the upstream names it.
    pub stop: Option<String>,
    /// How many calls of its client's tools it asked for.
    pub tool_calls: u64,
    /// How many events there were.
    pub events: u64,
    /// How many of them were too large to be looked into.
    pub unparsed: u64,
    /// Whether an event was not what the dialect has.
    pub malformed: bool,
    /// Whether an event was an error.
    pub error_event: bool,
    /// Whether the stream has the end that the dialect defines.
    pub done: bool,
}

impl Tap {
    /// A tap that passes everything on.
    #[must_use]
    pub fn new(dialect: Dialect) -> Self {
        Self { lines: Lines::default(), events: Events::new(dialect), held: None }
    }

    /// The same, but the chunk of a chat that has only the usage is not passed on. For a client that did not ask for
    /// it. An event is held until it is clear that it is not that chunk.
    #[must_use]
    pub fn hide_usage_chunk(mut self) -> Self {
        self.held = self.events.is_chat().then(Held::default);
        self
    }

    /// Takes the next chunk. Without anything to hide all of it passes.
    pub fn feed(&mut self, chunk: &[u8]) -> Passed {
        let Self { lines, events, held } = self;
        let mut passing = held.as_mut().map(Held::start);
        lines.feed(chunk, |signal| {
            let is_usage_only = events.take(&signal);
            if let Some(passing) = &mut passing {
                match signal {
                    Signal::Begins { at } => passing.begins(at),
                    Signal::Ends { at, .. } => passing.ends(at, is_usage_only),
                    Signal::EndsFully { at } => passing.ends_fully(at),
                    Signal::DataLine | Signal::Data(_) | Signal::NameLine | Signal::Name(_) => {}
                }
            }
        });
        match passing {
            Some(passing) => passing.passed(chunk, || lines.size() > MAX_EVENT || events.has_choice()),
            None => Passed::All,
        }
    }

    /// Ends the stream. Gives the bytes that were still held and go to the client, and what was seen.
    #[must_use]
    pub fn finish(self) -> (Vec<u8>, StreamSummary) {
        let Self { lines, mut events, held } = self;
        let mut is_usage_only = false;
        lines.finish(|signal| is_usage_only = events.take(&signal));
        let rest = held.filter(|_| !is_usage_only).map(Held::into_bytes).unwrap_or_default();
        (rest, events.seen())
    }
}
