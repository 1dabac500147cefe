//! The head of a request, read by hand. What readers are known to take differently is refused.

use tokio::io::{AsyncRead, AsyncReadExt as _};

/// The largest head that is taken.
pub(super) const MOST: usize = 16 << 10;
/// The most headers.
const MOST_HEADERS: usize = 100;
const END: &[u8] = b"\r\n\r\n";

/// A head that can be read in one way only.
#[derive(Debug)]
pub(super) struct Head<'a> {
    pub(super) method: &'a str,
    pub(super) target: &'a str,
    /// Whether it is HTTP/1.1; else it is HTTP/1.0.
    pub(super) is_new: bool,
    pub(super) headers: Vec<(&'a str, &'a [u8])>,
}

/// Why a head is refused, in a sentence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BadHead(pub(super) &'static str);

/// Reads until the head is whole. Gives its length, without its end; what follows it stays in `held` behind it. `None` says
/// that the client left before.
pub(super) async fn read(
    client: &mut (impl AsyncRead + Unpin),
    held: &mut Vec<u8>,
) -> Result<Option<usize>, BadHead> {
    let mut part = [0; 4 << 10];
    loop {
        let from = held.len().saturating_sub(END.len() - 1);
        match client.read(&mut part).await {
            Ok(count) if count > 0 => held.extend_from_slice(part.get(..count).unwrap_or_default()),
            // A client that breaks off has left too.
            Ok(_) | Err(_) => return Ok(None),
        }
        let found = held.get(from..).and_then(|bytes| memchr::memmem::find(bytes, END));
        match found.map(|at| from + at) {
            Some(length) if length <= MOST => return Ok(Some(length)),
            None if held.len() <= MOST + END.len() && !has_bare_line_feed(held) => {}
            None if held.len() <= MOST + END.len() => return Err(LINE_END),
            _ => return Err(BadHead("the head of the request is larger than 16 KiB")),
        }
    }
}

const LINE_END: BadHead = BadHead("a line of the head does not end with CR LF, or has one of them in it");

/// Readers that take a line feed alone would see an end of the head that is not seen here.
fn has_bare_line_feed(bytes: &[u8]) -> bool {
    memchr::memchr_iter(b'\n', bytes)
        .any(|at| at.checked_sub(1).and_then(|before| bytes.get(before)) != Some(&b'\r'))
}

/// Takes a whole head apart, without its end.
pub(super) fn parse(head: &[u8]) -> Result<Head<'_>, BadHead> {
    let mut lines = Vec::new();
    let mut rest = head;
    while let Some(at) = memchr::memmem::find(rest, b"\r\n") {
        let (line, more) = rest.split_at(at);
        lines.push(line);
        rest = more.get(2..).unwrap_or_default();
    }
    lines.push(rest);
    if lines.iter().any(|line| memchr::memchr2(b'\r', b'\n', line).is_some()) {
        return Err(LINE_END);
    }
    let (first, lines) = lines.split_first().ok_or(NOT_A_REQUEST)?;
    if lines.len() > MOST_HEADERS {
        return Err(BadHead("the request has more than 100 headers"));
    }
    let first = std::str::from_utf8(first).map_err(|_| NOT_A_REQUEST)?;
    let mut words = first.split(' ');
    let (Some(method), Some(target), Some(version), None) =
        (words.next(), words.next(), words.next(), words.next())
    else {
        return Err(NOT_A_REQUEST);
    };
    let is_new = match version {
        "HTTP/1.1" => true,
        "HTTP/1.0" => false,
        _ => return Err(NOT_A_REQUEST),
    };
    let is_plain = !method.is_empty() && !target.is_empty() && target.bytes().all(|b| b.is_ascii_graphic());
    if !is_plain {
        return Err(NOT_A_REQUEST);
    }
    let headers = lines.iter().map(|line| header(line)).collect::<Result<_, _>>()?;
    Ok(Head { method, target, is_new, headers })
}

const NOT_A_REQUEST: BadHead =
    BadHead("the first line is not a method, a target and `HTTP/1.1`, with one space between them");

fn header(line: &[u8]) -> Result<(&str, &[u8]), BadHead> {
    if matches!(line.first(), Some(b' ' | b'\t')) {
        return Err(BadHead("a header is folded over several lines"));
    }
    let bad =
        BadHead("a line of the head is not a name, a colon and a value, in characters that they can have");
    let colon = memchr::memchr(b':', line).ok_or(bad)?;
    let (name, value) = line.split_at_checked(colon).ok_or(bad)?;
    let value = value.get(1..).unwrap_or_default().trim_ascii();
    let is_token = |byte: &u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte);
    let is_readable = |byte: &u8| *byte == b'\t' || !byte.is_ascii_control();
    if name.is_empty() || !name.iter().all(is_token) || !value.iter().all(is_readable) {
        return Err(bad);
    }
    Ok((std::str::from_utf8(name).map_err(|_| bad)?, value))
}
