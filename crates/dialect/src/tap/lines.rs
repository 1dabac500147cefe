//! Splits a stream into lines, fields and events, as the standard of server-sent events has it.

use memchr::memchr2;

const BOM: &[u8] = b"\xef\xbb\xbf";

/// The next part of the stream.
#[derive(Debug)]
pub(super) enum Signal<'a> {
    /// An event begins with the byte at this place of the chunk. Comments before it are not part of it.
    Begins { at: usize },
    /// A line of data begins.
    DataLine,
    /// More of that line.
    Data(&'a [u8]),
    /// A line with the event's name begins.
    NameLine,
    /// More of that name.
    Name(&'a [u8]),
    /// The event has ended before this place of the chunk, and has as many bytes.
    Ends { at: usize, size: usize },
    /// The line feed of the event's last line end has come after its carriage return.
    EndsFully { at: usize },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Field {
    Data,
    Name,
    Other,
}

impl Field {
    fn of(name: &[u8]) -> Self {
        match name {
            b"data" => Self::Data,
            b"event" => Self::Name,
            _ => Self::Other,
        }
    }
}

/// Where in a line the stream is.
#[derive(Clone, Copy, Debug)]
enum Place {
    /// At the start of the stream, after as many bytes of a byte order mark.
    Mark(usize),
    LineStart,
    FieldName {
        bytes: [u8; 5],
        length: usize,
    },
    /// Behind the colon, where one space may stand.
    Colon(Field),
    Value(Field),
}

/// Where in a stream the tap is.
#[derive(Debug)]
pub(super) struct Lines {
    place: Place,
    /// The last byte was a carriage return that ended a line, and maybe an event.
    after_return: Option<Ended>,
    in_event: bool,
    /// The bytes of the event in earlier chunks.
    size: usize,
    /// Where in this chunk the event begins or goes on.
    from: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ended {
    Line,
    Event,
}

impl Default for Lines {
    fn default() -> Self {
        Self { place: Place::Mark(0), after_return: None, in_event: false, size: 0, from: 0 }
    }
}

impl Lines {
    /// How many bytes of the event that is under way have come.
    pub(super) fn size(&self) -> usize {
        self.size
    }

    pub(super) fn feed<'a>(&mut self, chunk: &'a [u8], mut signal: impl FnMut(Signal<'a>)) {
        self.from = 0;
        let mut at = 0;
        while let Some(&byte) = chunk.get(at) {
            if let Some(ended) = self.after_return.take()
                && byte == b'\n'
            {
                at += 1;
                if ended == Ended::Event {
                    signal(Signal::EndsFully { at });
                }
                continue;
            }
            if let Place::Value(field) = self.place {
                let rest = &chunk[at..];
                let end = memchr2(b'\n', b'\r', rest).unwrap_or(rest.len());
                value(field, &rest[..end], &mut signal);
                at += end;
                if end < rest.len() {
                    self.line_end(chunk[at], at, &mut signal);
                    at += 1;
                }
            } else if self.step(byte, at, &mut signal) {
                at += 1;
            }
        }
        if self.in_event {
            self.size = self.size.saturating_add(chunk.len() - self.from);
        }
    }

    /// Ends the last line and the last event, though the stream did not.
    pub(super) fn finish<'a>(mut self, mut signal: impl FnMut(Signal<'a>)) {
        if !matches!(self.place, Place::LineStart | Place::Mark(0)) {
            self.line_end(b'\n', 0, &mut signal);
        }
        if self.in_event {
            signal(Signal::Ends { at: 0, size: self.size });
        }
    }

    /// Takes one byte outside of a value. Gives whether it is used up.
    fn step<'a>(&mut self, byte: u8, at: usize, signal: &mut impl FnMut(Signal<'a>)) -> bool {
        let is_end = matches!(byte, b'\n' | b'\r');
        match self.place {
            Place::Mark(seen) => {
                if byte == BOM[seen] {
                    self.place = if seen + 1 == BOM.len() { Place::LineStart } else { Place::Mark(seen + 1) };
                    return true;
                }
                self.place = Place::LineStart;
                if seen > 0 {
                    // Half a mark is the start of an unknown field.
                    self.begin(at, signal);
                    self.place = Place::Value(Field::Other);
                }
                return false;
            }
            _ if is_end => self.line_end(byte, at, signal),
            Place::LineStart if byte == b':' => self.place = Place::Value(Field::Other),
            Place::LineStart => {
                self.begin(at, signal);
                self.place = Place::FieldName { bytes: [byte, 0, 0, 0, 0], length: 1 };
            }
            Place::FieldName { bytes, length } if byte == b':' => {
                let field = Field::of(&bytes[..length]);
                field_begins(field, signal);
                self.place = Place::Colon(field);
            }
            Place::FieldName { mut bytes, length } => {
                self.place = match bytes.get_mut(length) {
                    Some(free) => {
                        *free = byte;
                        Place::FieldName { bytes, length: length + 1 }
                    }
                    // Too long for a name that is known. Its colon does not matter any more.
                    None => Place::Value(Field::Other),
                };
            }
            Place::Colon(field) | Place::Value(field) => {
                self.place = Place::Value(field);
                return byte == b' ';
            }
        }
        true
    }

    fn begin<'a>(&mut self, at: usize, signal: &mut impl FnMut(Signal<'a>)) {
        if !self.in_event {
            (self.in_event, self.size, self.from) = (true, 0, at);
            signal(Signal::Begins { at });
        }
    }

    fn line_end<'a>(&mut self, byte: u8, at: usize, signal: &mut impl FnMut(Signal<'a>)) {
        let mut ended = Ended::Line;
        match self.place {
            Place::LineStart if self.in_event => {
                let size = self.size.saturating_add(at + 1 - self.from);
                signal(Signal::Ends { at: at + 1, size });
                (self.in_event, self.size) = (false, 0);
                ended = Ended::Event;
            }
            // A field without a colon has an empty value.
            Place::FieldName { bytes, length } => field_begins(Field::of(&bytes[..length]), signal),
            Place::LineStart | Place::Mark(_) | Place::Colon(_) | Place::Value(_) => {}
        }
        self.place = Place::LineStart;
        self.after_return = (byte == b'\r').then_some(ended);
    }
}

fn field_begins<'a>(field: Field, signal: &mut impl FnMut(Signal<'a>)) {
    match field {
        Field::Data => signal(Signal::DataLine),
        Field::Name => signal(Signal::NameLine),
        Field::Other => {}
    }
}

fn value<'a>(field: Field, bytes: &'a [u8], signal: &mut impl FnMut(Signal<'a>)) {
    match field {
        Field::Data => signal(Signal::Data(bytes)),
        Field::Name => signal(Signal::Name(bytes)),
        Field::Other => {}
    }
}
