//! Reads the events of a stream.

use super::choices::Choices;
use super::lines::Signal;
use super::{MAX_EVENT, StreamSummary};
use crate::dialect::Dialect;
use crate::response::{Event, ResponseReader, ResponseSummary};
use crate::usage::Doubt;

/// Names of events are kept up to this length; all that matter are shorter.
const MAX_NAME: usize = 32;

/// A buffer that grew beyond this for one large event is given back after it: there may be thousands of streams.
const KEPT_CAPACITY: usize = 16 << 10;

/// The summary so far, and the current event.
#[derive(Debug)]
pub(super) struct Events {
    dialect: Dialect,
    reader: ResponseReader,
    /// The properties that the reader does not collect.
    seen: StreamSummary,
    data: Vec<u8>,
    has_data: bool,
    name: Vec<u8>,
    choices: Choices,
}

impl Events {
    pub(super) fn new(dialect: Dialect) -> Self {
        Self {
            dialect,
            reader: ResponseReader::new(dialect),
            seen: StreamSummary::default(),
            data: Vec::new(),
            has_data: false,
            name: Vec::new(),
            choices: Choices::default(),
        }
    }

    pub(super) fn is_chat(&self) -> bool {
        self.dialect == Dialect::Chat
    }

    /// Whether the event under way is already known to have a choice.
    pub(super) fn has_choice(&mut self) -> bool {
        self.choices.has_one(&self.data)
    }

    /// Takes what the stream shows. Gives whether an event has ended that is the chunk with only the usage.
    pub(super) fn take(&mut self, signal: &Signal<'_>) -> bool {
        match signal {
            Signal::DataLine => {
                if self.has_data {
                    self.push(b"\n");
                }
                self.has_data = true;
            }
            Signal::Data(bytes) => self.push(bytes),
            Signal::NameLine => self.name.clear(),
            Signal::Name(bytes) => {
                let free = MAX_NAME - self.name.len();
                self.name.extend_from_slice(&bytes[..bytes.len().min(free)]);
            }
            Signal::Ends { size, .. } => return self.end(*size),
            Signal::Begins { .. } | Signal::EndsFully { .. } => {}
        }
        false
    }

    /// Bytes that do not fit belong to an event that is too large to be parsed.
    fn push(&mut self, bytes: &[u8]) {
        if self.data.len() + bytes.len() <= MAX_EVENT {
            self.data.extend_from_slice(bytes);
        }
    }

    fn end(&mut self, size: usize) -> bool {
        // An event without data is none.
        let event = if self.has_data { self.read(size) } else { Event::default() };
        let is_usage_only = self.is_chat() && event.is_usage_only() && !self.has_choice();
        self.data.clear();
        if self.data.capacity() > KEPT_CAPACITY {
            self.data = Vec::new();
        }
        self.name.clear();
        self.has_data = false;
        self.choices = Choices::default();
        is_usage_only
    }

    fn read(&mut self, size: usize) -> Event {
        self.seen.events += 1;
        self.seen.error_event |= self.name == b"error";
        // Several servers of Responses and Messages end with [DONE] too.
        if self.seen.done && self.data.trim_ascii() != b"[DONE]" {
            self.seen.doubt = Some(Doubt::AfterEnd);
        }
        if size > MAX_EVENT {
            self.seen.unparsed += 1;
            return Event::default();
        }
        if self.data.trim_ascii() == b"[DONE]" {
            self.seen.done |= self.is_chat();
            return Event::default();
        }
        let read = std::str::from_utf8(&self.data).ok().and_then(|text| self.reader.take(text).ok());
        self.seen.malformed |= read.is_none();
        let event = read.unwrap_or_default();
        self.seen.error_event |= event.is_error;
        self.seen.done |= event.is_last;
        event
    }

    pub(super) fn seen(self) -> StreamSummary {
        let ResponseSummary { model, usage, doubt, stop, tool_calls, error: _ } = self.reader.summary();
        StreamSummary { model, usage, doubt: self.seen.doubt.or(doubt), stop, tool_calls, ..self.seen }
    }
}
