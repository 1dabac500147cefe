//! The head of a request, looked at byte by byte for what readers take differently.

use serde_json::json;

/// The largest head that is taken.
const MOST: usize = 64 << 10;
/// The most headers of a request. As many as the HTTP library takes where it is told nothing.
const MOST_HEADERS: usize = 100;

/// A head that came in full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Found {
    /// How many of the bytes that came last belong to it.
    pub(super) used: usize,
    /// How many bytes the body has.
    pub(super) body: u64,
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

/// Takes bytes that came after those that were `seen`. Gives the head once it is whole.
pub(super) fn more(seen: &mut Vec<u8>, bytes: &[u8]) -> Result<Option<Found>, BadHead> {
    const END: &[u8] = b"\r\n\r\n";
    let before = seen.len();
    // What is nearly always so: all of it came at once.
    if before == 0
        && let Some(end) = memchr::memmem::find(bytes, END)
    {
        return whole(&bytes[..end]).map(|body| Some(Found { used: end + END.len(), body }));
    }
    seen.extend_from_slice(&bytes[..bytes.len().min(MOST + END.len())]);
    let from = before.saturating_sub(END.len() - 1);
    match memchr::memmem::find(&seen[from..], END) {
        Some(end) => {
            let end = from + end;
            whole(&seen[..end]).map(|body| Some(Found { used: end + END.len() - before, body }))
        }
        None if seen.len() > MOST => Err(BadHead::TooLarge),
        // Readers that take a bare line feed would see the end of the head here.
        None if has_bare_line_feed(seen, from) => Err(BadHead::LineEnd),
        None => Ok(None),
    }
}

fn has_bare_line_feed(seen: &[u8], from: usize) -> bool {
    memchr::memchr_iter(b'\n', &seen[from..]).any(|at| {
        let at = from + at;
        at == 0 || seen[at - 1] != b'\r'
    })
}

/// Checks a head without its last empty line, and gives the length of the body.
fn whole(head: &[u8]) -> Result<u64, BadHead> {
    if head.len() > MOST {
        return Err(BadHead::TooLarge);
    }
    if head.is_empty() || head.starts_with(b"\r\n") {
        return Err(BadHead::EmptyLine);
    }
    let mut length = None;
    let mut rest = head;
    let mut lines = 0;
    while !rest.is_empty() {
        let line = match memchr::memchr2(b'\r', b'\n', rest) {
            None => std::mem::take(&mut rest),
            Some(end) if rest[end..].starts_with(b"\r\n") => {
                let line = &rest[..end];
                rest = &rest[end + 2..];
                line
            }
            Some(_) => return Err(BadHead::LineEnd),
        };
        match lines {
            0 => first(line)?,
            1..=MOST_HEADERS => header(line, &mut length)?,
            _ => return Err(BadHead::TooMany),
        }
        lines += 1;
    }
    Ok(length.unwrap_or(0))
}

/// Checks the first line. Which paths there are is not known here.
fn first(line: &[u8]) -> Result<(), BadHead> {
    let mut parts = line.split(|byte| *byte == b' ');
    let (method, target, version) = (parts.next(), parts.next(), parts.next());
    let (Some(method), Some(target), Some(b"HTTP/1.1" | b"HTTP/1.0"), None) =
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
    if is_place && is_plain { Ok(()) } else { Err(BadHead::NotARequest) }
}

/// Whether a name can have this character.
fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(byte, b'!' | b'#'..=b'\'' | b'*' | b'+' | b'-' | b'.' | b'^'..=b'`' | b'|' | b'~')
}

fn header(line: &[u8], length: &mut Option<u64>) -> Result<(), BadHead> {
    if matches!(line.first(), Some(b' ' | b'\t')) {
        return Err(BadHead::Folded);
    }
    let colon = memchr::memchr(b':', line).filter(|at| *at > 0).ok_or(BadHead::NotAHeader)?;
    let (name, value) = (&line[..colon], &line[colon + 1..]);
    let is_readable = |byte: &u8| *byte == b'\t' || !byte.is_ascii_control();
    if !name.iter().all(|byte| is_token(*byte)) {
        return Err(BadHead::NotAHeader);
    }
    if name.eq_ignore_ascii_case(b"transfer-encoding") {
        return Err(BadHead::Chunked);
    }
    if name.eq_ignore_ascii_case(b"content-length") {
        let digits = value.trim_ascii();
        let number = std::str::from_utf8(digits).ok().and_then(|text| text.parse().ok());
        let plain = digits.iter().all(u8::is_ascii_digit);
        if !plain || number.is_none() || length.is_some() {
            return Err(BadHead::Length);
        }
        *length = number;
    }
    if value.iter().all(is_readable) { Ok(()) } else { Err(BadHead::NotAHeader) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &str) -> Result<Option<Found>, BadHead> {
        more(&mut Vec::new(), text.as_bytes())
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
        let head = text.len() - 12;
        for first in 0..text.len() {
            for second in first..text.len() {
                let (mut seen, mut at, mut found) = (Vec::new(), 0, None);
                for part in [&text[..first], &text[first..second], &text[second..]] {
                    if found.is_none() && !part.is_empty() {
                        found = more(&mut seen, part).unwrap().map(|found| (at + found.used, found.body));
                    }
                    at += part.len();
                }
                assert_eq!(found, Some((head, 12)), "cut at {first} and {second}");
            }
        }
    }
}
