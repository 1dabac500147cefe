//! Server-sent events, and what each is in its stream.

use serde::Serialize;

/// One event of a stream.
#[derive(Clone, Debug)]
pub(crate) struct Event {
    /// As it is sent.
    pub(crate) bytes: Vec<u8>,
    /// Its place in the stream.
    pub(crate) place: Place,
}

/// The place of an event in its stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// It begins something.
    Opening,
    /// It is a piece of content.
    Piece,
    /// It ends something.
    Closing,
}

impl Event {
    /// An event with a name.
    pub(super) fn named(place: Place, name: &str, data: &impl Serialize) -> Self {
        Self { bytes: raw(Some(name), &json(data)), place }
    }

    /// An event with data only.
    pub(super) fn plain(place: Place, data: &impl Serialize) -> Self {
        Self { bytes: raw(None, &json(data)), place }
    }
}

/// A value as JSON.
pub(super) fn json(data: &impl Serialize) -> Vec<u8> {
    // Our own types, whose keys are texts: this cannot fail.
    serde_json::to_vec(data).unwrap_or_default()
}

/// An event of data that is on one line.
pub(super) fn raw(name: Option<&str>, data: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(data.len() + 48);
    if let Some(name) = name {
        bytes.extend_from_slice(format!("event: {name}\n").as_bytes());
    }
    bytes.extend_from_slice(b"data: ");
    bytes.extend_from_slice(data);
    bytes.extend_from_slice(b"\n\n");
    bytes
}

/// An event whose data ends in the middle.
pub(super) fn malformed(name: Option<&str>) -> Vec<u8> {
    raw(name, br#"{"this is not JSON": [1, 2,"#)
}

/// A line that readers ignore.
pub(super) fn comment() -> Vec<u8> {
    b": ping\n\n".to_vec()
}
