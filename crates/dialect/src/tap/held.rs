//! Holds the bytes of an event that may have to be hidden.

use std::ops::Range;

use super::Passed;

/// The bytes that are held between chunks: the start of one event, or none.
#[derive(Debug, Default)]
pub(super) struct Held {
    bytes: Vec<u8>,
    /// The event that is under way.
    event: Event,
    /// The last event was hidden and ended with a carriage return, so that a line feed after it is hidden too.
    hid_last: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Event {
    /// There is none.
    #[default]
    None,
    /// It is held. In this chunk it starts or goes on here.
    Undecided { from: usize },
    /// It passes.
    Passes,
}

/// The part of one chunk that passes.
#[derive(Debug)]
pub(super) struct Passing<'h> {
    held: &'h mut Held,
    earlier: Vec<u8>,
    parts: Vec<Range<usize>>,
    /// Up to where the parts are settled.
    settled: usize,
}

impl Held {
    /// Starts with the next chunk.
    pub(super) fn start(&mut self) -> Passing<'_> {
        if let Event::Undecided { from } = &mut self.event {
            *from = 0;
        }
        Passing { held: self, earlier: Vec::new(), parts: Vec::new(), settled: 0 }
    }

    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}

impl Passing<'_> {
    pub(super) fn begins(&mut self, at: usize) {
        self.held.event = Event::Undecided { from: at };
        self.held.hid_last = false;
    }

    pub(super) fn ends(&mut self, at: usize, hide: bool) {
        let event = std::mem::take(&mut self.held.event);
        self.held.hid_last = false;
        match event {
            Event::Undecided { from } if hide => {
                self.held.bytes = Vec::new();
                self.pass_up_to(from);
                self.settled = at;
                self.held.hid_last = true;
            }
            Event::Undecided { .. } => self.release(),
            Event::None | Event::Passes => {}
        }
    }

    /// The line feed before `at` still belongs to the last event.
    pub(super) fn ends_fully(&mut self, at: usize) {
        if std::mem::take(&mut self.held.hid_last) {
            self.settled = at;
        }
    }

    /// The bytes that pass. The current event stays held until `is_decided`.
    pub(super) fn passed(mut self, chunk: &[u8], is_decided: impl FnOnce() -> bool) -> Passed {
        let mut end = chunk.len();
        if let Event::Undecided { from } = self.held.event {
            if is_decided() {
                self.held.event = Event::Passes;
                self.release();
            } else {
                end = from;
                self.held.bytes.extend_from_slice(&chunk[from..]);
            }
        }
        if self.earlier.is_empty() && self.parts.is_empty() && self.settled == 0 && end == chunk.len() {
            return Passed::All;
        }
        self.pass_up_to(end);
        Passed::Parts { earlier: self.earlier, of_chunk: self.parts }
    }

    /// Lets what is held of the event go.
    fn release(&mut self) {
        self.earlier.append(&mut self.held.bytes);
    }

    fn pass_up_to(&mut self, end: usize) {
        if self.settled < end {
            self.parts.push(self.settled..end);
        }
    }
}
