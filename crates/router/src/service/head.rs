//! The head of a request, looked at byte by byte for what readers take differently.

use std::sync::LazyLock;

use bytes::{Bytes, BytesMut};
use http::Method;
use memchr::memmem::Finder;
use serde_json::json;

use super::headers::Known;

/// The largest head that is taken.
const MOST: usize = 64 << 10;
const MORE_THAN_MOST: usize = MOST + 1;
/// The most headers of a request. As many as others take.
const MOST_HEADERS: usize = 100;

/// The head of a request: what the router reads of it.
pub(super) struct Head {
    pub(super) method: Method,
    /// What is asked for: a path with its query, or something that the router does not have.
    target: String,
    /// Only those that the router reads.
    pub(super) headers: Known,
    /// How many bytes the body has.
    pub(super) length: u64,
    /// Whether no other request follows on this connection.
    pub(super) is_last: bool,
    /// Whether the client speaks HTTP/1.0, which knows no chunks.
    pub(super) is_old: bool,
    /// Whether the client waits for leave to send the body.
    pub(super) waits: bool,
}

impl Head {
    /// The path that is asked for, and the query. None, if it is not a path of this server: a client of an origin names
    /// only the path; a whole URL is for proxies, of which this is none.
    pub(super) fn place(&self) -> Option<(&str, Option<&str>)> {
        if !self.target.starts_with('/') {
            return None;
        }
        Some(match self.target.split_once('?') {
            Some((path, query)) => (path, Some(query)),
            None => (&self.target, None),
        })
    }
}

/// Why a request is refused before it is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum BadHead {
    /// It is too large.
    #[error("the head of the request is larger than {MOST} bytes; send fewer or shorter headers")]
    TooLarge,
    /// There are too many headers.
    #[error("the request has more than {MOST_HEADERS} headers; send fewer")]
    TooMany,
    /// The first line is not one of a request.
    #[error("the first line is not a method, a path and `HTTP/1.1`, with one space between them")]
    NotARequest,
    /// A line ends otherwise than with both characters.
    #[error("a line of the head does not end with CR LF, or has a CR in it")]
    LineEnd,
    /// A header goes on in the next line.
    #[error("a header is folded over several lines; send it on one")]
    Folded,
    /// The first line is empty.
    #[error("the request begins with an empty line")]
    EmptyLine,
    /// A header's name or value has a character that it cannot have, or there is no colon.
    #[error("a line of the head is not a name, a colon and a value, in characters that they can have")]
    NotAHeader,
    /// The length is there twice, or is not a number.
    #[error("`content-length` must be there once, as a plain number")]
    Length,
    /// The body comes in chunks.
    #[error("`transfer-encoding` is not taken; send the body with `content-length`")]
    Chunked,
    /// A request came before the answer to the one before was over.
    #[error("a request came before the answer to the one before it was over; send one at a time")]
    Ahead,
}

impl BadHead {
    fn status(self) -> &'static str {
        match self {
            Self::TooLarge | Self::TooMany => "431 Request Header Fields Too Large",
            Self::Chunked => "411 Length Required",
            Self::NotARequest
            | Self::LineEnd
            | Self::Folded
            | Self::EmptyLine
            | Self::NotAHeader
            | Self::Length
            | Self::Ahead => "400 Bad Request",
        }
    }

    /// The whole answer. Which API was called is not known, so that the body has the keys of both families.
    pub(super) fn answer(self) -> Vec<u8> {
        let error =
            json!({"type": "invalid_request_error", "message": self.to_string(), "code": "bad_request"});
        let body = json!({"type": "error", "error": error}).to_string();
        let status = self.status();
        let length = body.len();
        format!(
            "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\
             connection: close\r\n\r\n{body}"
        )
        .into_bytes()
    }
}

/// Takes the head out of what came, once all of it is there. `looked_at` is how much of that was looked at before.
pub(super) fn take(came: &mut BytesMut, looked_at: &mut usize) -> Result<Option<Head>, BadHead> {
    static FINDER: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(END));
    const END: &[u8] = b"\r\n\r\n";
    let from = looked_at.saturating_sub(END.len() - 1);
    if let Some(end) = FINDER.find(&came[from..]) {
        let taken = came.split_to(from + end + END.len()).freeze();
        *looked_at = 0;
        return whole(&taken.slice(..from + end)).map(Some);
    }
    *looked_at = came.len();
    match came.len() {
        MORE_THAN_MOST.. => Err(BadHead::TooLarge),
        // Readers that take a bare line feed would see the end of the head here.
        _ if has_bare_line_feed(came, from) => Err(BadHead::LineEnd),
        _ => Ok(None),
    }
}

fn has_bare_line_feed(seen: &[u8], from: usize) -> bool {
    memchr::memchr_iter(b'\n', &seen[from..]).any(|at| {
        let at = from + at;
        at == 0 || seen[at - 1] != b'\r'
    })
}

/// Checks a head without its last empty line.
fn whole(bytes: &Bytes) -> Result<Head, BadHead> {
    if bytes.len() > MOST {
        return Err(BadHead::TooLarge);
    }
    if bytes.is_empty() || bytes.starts_with(b"\r\n") {
        return Err(BadHead::EmptyLine);
    }
    let (line, mut rest) = line(bytes)?;
    let mut head = first(line)?;
    let (mut length, mut lines) = (None, 0);
    while !rest.is_empty() {
        let (line, more) = self::line(rest)?;
        rest = more;
        lines += 1;
        if lines > MOST_HEADERS {
            return Err(BadHead::TooMany);
        }
        header(bytes, line, &mut head, &mut length)?;
    }
    head.length = length.unwrap_or(0);
    Ok(head)
}

/// The first line, and what follows it.
fn line(bytes: &[u8]) -> Result<(&[u8], &[u8]), BadHead> {
    match memchr::memchr2(b'\r', b'\n', bytes) {
        None => Ok((bytes, &[])),
        Some(end) if bytes[end..].starts_with(b"\r\n") => Ok((&bytes[..end], &bytes[end + 2..])),
        Some(_) => Err(BadHead::LineEnd),
    }
}

/// Reads the first line. Which paths there are is not known here.
fn first(line: &[u8]) -> Result<Head, BadHead> {
    let mut parts = line.split(|byte| *byte == b' ');
    let (method, target, version) = (parts.next(), parts.next(), parts.next());
    let (Some(method), Some(target), Some(version @ (b"HTTP/1.1" | b"HTTP/1.0")), None) =
        (method, target, version, parts.next())
    else {
        return Err(BadHead::NotARequest);
    };
    let is_place = match target {
        [b'/', ..] | b"*" => true,
        _ => method == b"CONNECT" || memchr::memmem::find(target, b"://").is_some(),
    };
    let is_plain = !method.is_empty()
        && method.iter().all(|byte| is_token(*byte))
        && target.iter().all(u8::is_ascii_graphic);
    let (Ok(method), Ok(target), true) =
        (Method::from_bytes(method), std::str::from_utf8(target), is_place && is_plain)
    else {
        return Err(BadHead::NotARequest);
    };
    let is_old = version == b"HTTP/1.0";
    Ok(Head {
        method,
        target: target.to_owned(),
        headers: Known::default(),
        length: 0,
        // Whether an old client takes another answer on the connection is not asked.
        is_last: is_old,
        is_old,
        waits: false,
    })
}

/// Whether a name can have this character.
fn is_token(byte: u8) -> bool {
    TOKEN[usize::from(byte)]
}

/// Looked up: every byte of every name is asked for.
static TOKEN: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0_u8;
    while byte < 128 {
        table[byte as usize] = byte.is_ascii_alphanumeric()
            || matches!(byte, b'!' | b'#'..=b'\'' | b'*' | b'+' | b'-' | b'.' | b'^'..=b'`' | b'|' | b'~');
        byte += 1;
    }
    table
};

/// Reads a line of the head. What is kept of it stays where it came.
fn header(bytes: &Bytes, line: &[u8], head: &mut Head, length: &mut Option<u64>) -> Result<(), BadHead> {
    if matches!(line.first(), Some(b' ' | b'\t')) {
        return Err(BadHead::Folded);
    }
    let colon = memchr::memchr(b':', line).filter(|at| *at > 0).ok_or(BadHead::NotAHeader)?;
    let (name, value) = (&line[..colon], line[colon + 1..].trim_ascii());
    let is_readable = |byte: &u8| *byte == b'\t' || !byte.is_ascii_control();
    if !name.iter().all(|byte| is_token(*byte)) {
        return Err(BadHead::NotAHeader);
    }
    let is = |known: &[u8]| name.eq_ignore_ascii_case(known);
    if is(b"transfer-encoding") {
        return Err(BadHead::Chunked);
    }
    if is(b"content-length") {
        let number = std::str::from_utf8(value).ok().and_then(|text| text.parse().ok());
        let plain = value.iter().all(u8::is_ascii_digit);
        if !plain || number.is_none() || length.is_some() {
            return Err(BadHead::Length);
        }
        *length = number;
    }
    if !line[colon + 1..].iter().all(is_readable) {
        return Err(BadHead::NotAHeader);
    }
    if is(b"connection") {
        let mut words = value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii);
        head.is_last |= words.any(|word| word.eq_ignore_ascii_case(b"close"));
    } else if is(b"expect") {
        head.waits |= value.eq_ignore_ascii_case(b"100-continue") && !head.is_old;
    } else {
        head.headers.take(name, || bytes.slice_ref(value)).map_err(|_| BadHead::NotAHeader)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &str) -> Result<Option<u64>, BadHead> {
        Ok(take(&mut BytesMut::from(text), &mut 0)?.map(|head| head.length))
    }

    #[test]
    fn what_readers_take_differently_is_refused() {
        let rows = [
            ("POST / HTTP/1.1\r\na: 1\r\n b\r\n\r\n", BadHead::Folded),
            ("POST / HTTP/1.1\r\na: 1\r\n\tb\r\n\r\n", BadHead::Folded),
            ("POST / HTTP/1.1\r\na: 1\rb: 2\r\n\r\n", BadHead::LineEnd),
            ("POST / HTTP/1.1\na: 1\r\n\r\n", BadHead::LineEnd),
            ("POST / HTTP/1.1\n\n", BadHead::LineEnd),
            ("POST / HTTP/1.1\r\ncontent-length: 1\r\ncontent-length: 1\r\n\r\n", BadHead::Length),
            ("POST / HTTP/1.1\r\ncontent-length: 1, 1\r\n\r\n", BadHead::Length),
            ("POST / HTTP/1.1\r\ncontent-length: +1\r\n\r\n", BadHead::Length),
            ("POST / HTTP/1.1\r\ncontent-length: \r\n\r\n", BadHead::Length),
            ("POST / HTTP/1.1\r\ncontent-length: 99999999999999999999\r\n\r\n", BadHead::Length),
            ("POST / HTTP/1.1\r\ncontent-length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", BadHead::Chunked),
            ("POST / HTTP/1.1\r\ntransfer-encoding: x\r\ncontent-length: 1\r\n\r\n", BadHead::Chunked),
            ("POST / HTTP/1.1\r\ncontent-length : 1\r\n\r\n", BadHead::NotAHeader),
            ("POST / HTTP/1.1\r\n: 1\r\n\r\n", BadHead::NotAHeader),
            ("POST / HTTP/1.1\r\na(b): 1\r\n\r\n", BadHead::NotAHeader),
            ("POST / HTTP/1.1\r\na: \0\r\n\r\n", BadHead::NotAHeader),
            ("POST / HTTP/1.1\r\na: \x7f\r\n\r\n", BadHead::NotAHeader),
            ("POST /\r\n\r\n", BadHead::NotARequest),
            ("POST  / HTTP/1.1\r\n\r\n", BadHead::NotARequest),
            ("POST / HTTP/1.1 \r\n\r\n", BadHead::NotARequest),
            ("POST / HTTP/2.0\r\n\r\n", BadHead::NotARequest),
            ("POST a HTTP/1.1\r\n\r\n", BadHead::NotARequest),
            ("PO(ST / HTTP/1.1\r\n\r\n", BadHead::NotARequest),
            (" / HTTP/1.1\r\n\r\n", BadHead::NotARequest),
            ("POST / HTTP/1.1\r\nnothing\r\n\r\n", BadHead::NotAHeader),
            ("\r\nPOST / HTTP/1.1\r\n\r\n", BadHead::EmptyLine),
            ("\r\n\r\n", BadHead::EmptyLine),
        ];
        for (head, bad) in rows {
            assert_eq!(all(head), Err(bad), "{head:?}");
        }
        assert_eq!(all(&format!("GET / HTTP/1.1\r\na: {}", "x".repeat(MOST))), Err(BadHead::TooLarge));
        assert_eq!(
            all(&format!("GET / HTTP/1.1\r\na: {}\r\n\r\n", "x".repeat(MOST))),
            Err(BadHead::TooLarge)
        );
    }

    #[test]
    fn a_plain_head_is_found_however_it_is_cut() {
        let text = b"POST /v1/messages HTTP/1.1\r\nhost: a\r\nContent-Length: 12\r\n\r\nhello, world";
        for first in 0..text.len() {
            for second in first..text.len() {
                let (mut came, mut looked_at, mut found) = (BytesMut::new(), 0, None);
                for part in [&text[..first], &text[first..second], &text[second..]] {
                    came.extend_from_slice(part);
                    if found.is_none() {
                        found = take(&mut came, &mut looked_at).unwrap();
                    }
                }
                let found = found.map(|head| head.length);
                assert_eq!(
                    (found, &came[..]),
                    (Some(12), &b"hello, world"[..]),
                    "cut at {first} and {second}"
                );
            }
        }
    }
}
