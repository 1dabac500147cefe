//! Strict validation of an HTTP/1 request head.
//!
//! Requests are smuggled where two parsers disagree about where one ends. This module refuses every head that parsers are
//! known to read differently; the accepted rest has one interpretation, also in hyper.

use std::sync::LazyLock;

use memchr::memmem::Finder;

/// The blank line that ends a head.
const END: &[u8] = b"\r\n\r\n";

/// The bounds of a head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeadLimits {
    /// The largest head, without the blank line at its end.
    pub max_bytes: usize,
    /// The most header lines.
    pub max_headers: usize,
}

/// The version in a request line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HttpVersion {
    /// `HTTP/1.0`
    Http10,
    /// `HTTP/1.1`
    Http11,
}

/// A valid request head.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestHead<'a> {
    /// The method, a token.
    pub method: &'a str,
    /// The target: origin form, absolute form, `*`, or the authority of a CONNECT.
    pub target: &'a str,
    /// The version.
    pub version: HttpVersion,
    /// Names and values in their order. Names are tokens; values have no surrounding whitespace.
    pub headers: Vec<(&'a str, &'a [u8])>,
    /// The length of the body: `content-length`, or zero without one.
    pub body_length: u64,
}

/// Why a request head is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadHead {
    /// The head is too large.
    #[error("the head of the request is larger than {max_bytes} bytes; send fewer or shorter headers")]
    TooLarge {
        /// The limit.
        max_bytes: usize,
    },
    /// There are too many header lines.
    #[error("the request has more than {max_headers} headers; send fewer")]
    TooManyHeaders {
        /// The limit.
        max_headers: usize,
    },
    /// The request line is malformed.
    #[error("the first line is not a method, a target and `HTTP/1.1`, with one space between them")]
    RequestLine,
    /// A line ends with a bare CR or LF.
    #[error("a line of the head does not end with CR LF, or has one of them in it")]
    LineEnd,
    /// A header uses obsolete line folding.
    #[error("a header is folded over several lines; send it on one")]
    Folded,
    /// The head begins with an empty line.
    #[error("the request begins with an empty line")]
    EmptyLine,
    /// A header line is malformed.
    #[error("a line of the head is not a name, a colon and a value, in characters that they can have")]
    Header,
    /// `content-length` is repeated or not a decimal number.
    #[error("`content-length` must be there once, as a plain number")]
    ContentLength,
    /// The request has a `transfer-encoding`.
    #[error("`transfer-encoding` is not accepted; send the body with `content-length`")]
    TransferEncoding,
    /// Bytes came before the response to the request before them was complete.
    #[error("a request came before the response to the one before it was complete; send one at a time")]
    Pipelined,
    /// The head was not complete in time.
    #[error("the head of the request was not complete in time; send it at once after connecting")]
    TimedOut,
}

impl BadHead {
    /// The status of the response.
    #[must_use]
    pub fn status(self) -> http::StatusCode {
        match self {
            Self::TooLarge { .. } | Self::TooManyHeaders { .. } => {
                http::StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE
            }
            Self::TransferEncoding => http::StatusCode::LENGTH_REQUIRED,
            Self::TimedOut => http::StatusCode::REQUEST_TIMEOUT,
            Self::RequestLine
            | Self::LineEnd
            | Self::Folded
            | Self::EmptyLine
            | Self::Header
            | Self::ContentLength
            | Self::Pipelined => http::StatusCode::BAD_REQUEST,
        }
    }
}

/// Finds the end of the head at the start of `bytes`: its length without the blank line, or `None` while it is incomplete.
/// `scanned` is how many of the bytes an earlier call has seen.
pub fn find_end(bytes: &[u8], scanned: usize, limits: HeadLimits) -> Result<Option<usize>, BadHead> {
    static FINDER: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(END));
    let from = scanned.saturating_sub(END.len() - 1).min(bytes.len());
    let too_large = BadHead::TooLarge { max_bytes: limits.max_bytes };
    match FINDER.find(&bytes[from..]).map(|at| from + at) {
        Some(length) if length > limits.max_bytes => Err(too_large),
        Some(length) => Ok(Some(length)),
        None if bytes.len() > limits.max_bytes + END.len() => Err(too_large),
        // A parser that accepts a bare LF would see the end of the head here.
        None if has_bare_line_feed(bytes, from) => Err(BadHead::LineEnd),
        None => Ok(None),
    }
}

fn has_bare_line_feed(bytes: &[u8], from: usize) -> bool {
    memchr::memchr_iter(b'\n', &bytes[from..]).any(|at| {
        let at = from + at;
        at == 0 || bytes[at - 1] != b'\r'
    })
}

/// Parses a complete head, without the blank line at its end.
pub fn parse(head: &[u8], limits: HeadLimits) -> Result<RequestHead<'_>, BadHead> {
    let mut headers = Vec::with_capacity(16);
    let (request_line, body_length) = walk(head, limits, |name, value| headers.push((name, value)))?;
    let RequestLine { method, target, version } = request_line;
    Ok(RequestHead { method, target, version, headers, body_length })
}

/// Validates a complete head, without the blank line at its end. Gives the length of the body that follows it.
pub fn validate(head: &[u8], limits: HeadLimits) -> Result<u64, BadHead> {
    walk(head, limits, |_, _| {}).map(|(_, body_length)| body_length)
}

struct RequestLine<'a> {
    method: &'a str,
    target: &'a str,
    version: HttpVersion,
}

fn walk<'a>(
    head: &'a [u8],
    limits: HeadLimits,
    mut visit: impl FnMut(&'a str, &'a [u8]),
) -> Result<(RequestLine<'a>, u64), BadHead> {
    if head.len() > limits.max_bytes {
        return Err(BadHead::TooLarge { max_bytes: limits.max_bytes });
    }
    if head.is_empty() || head.starts_with(b"\r\n") {
        return Err(BadHead::EmptyLine);
    }
    let (line, mut rest) = split_line(head)?;
    let request_line = request_line(line)?;
    let (mut length, mut count) = (None, 0);
    while !rest.is_empty() {
        let (line, more) = split_line(rest)?;
        rest = more;
        count += 1;
        if count > limits.max_headers {
            return Err(BadHead::TooManyHeaders { max_headers: limits.max_headers });
        }
        let (name, value) = header(line, &mut length)?;
        visit(name, value);
    }
    Ok((request_line, length.unwrap_or(0)))
}

/// The first line, and the bytes behind it.
fn split_line(bytes: &[u8]) -> Result<(&[u8], &[u8]), BadHead> {
    match memchr::memchr2(b'\r', b'\n', bytes) {
        None => Ok((bytes, &[])),
        // A CR LF at the very end would be an empty line inside of the head.
        Some(end) if bytes[end..].starts_with(b"\r\n") && end + 2 < bytes.len() => {
            Ok((&bytes[..end], &bytes[end + 2..]))
        }
        Some(_) => Err(BadHead::LineEnd),
    }
}

fn request_line(line: &[u8]) -> Result<RequestLine<'_>, BadHead> {
    let mut parts = line.split(|byte| *byte == b' ');
    let (Some(method), Some(target), Some(version), None) =
        (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return Err(BadHead::RequestLine);
    };
    let version = match version {
        b"HTTP/1.1" => HttpVersion::Http11,
        b"HTTP/1.0" => HttpVersion::Http10,
        _ => return Err(BadHead::RequestLine),
    };
    // The four forms of RFC 9112, section 3.2.
    let has_form = match target {
        [b'/', ..] | b"*" => true,
        _ => method == b"CONNECT" || memchr::memmem::find(target, b"://").is_some(),
    };
    let is_valid = has_form
        && !method.is_empty()
        && !target.is_empty()
        && method.iter().all(|byte| is_token(*byte))
        && target.iter().all(u8::is_ascii_graphic);
    match (std::str::from_utf8(method), std::str::from_utf8(target)) {
        (Ok(method), Ok(target)) if is_valid => Ok(RequestLine { method, target, version }),
        _ => Err(BadHead::RequestLine),
    }
}

fn header<'a>(line: &'a [u8], length: &mut Option<u64>) -> Result<(&'a str, &'a [u8]), BadHead> {
    if matches!(line.first(), Some(b' ' | b'\t')) {
        return Err(BadHead::Folded);
    }
    let colon = memchr::memchr(b':', line).filter(|at| *at > 0).ok_or(BadHead::Header)?;
    let (name, value) = (&line[..colon], line[colon + 1..].trim_ascii());
    if !name.iter().all(|byte| is_token(*byte)) {
        return Err(BadHead::Header);
    }
    if name.eq_ignore_ascii_case(b"transfer-encoding") {
        return Err(BadHead::TransferEncoding);
    }
    if name.eq_ignore_ascii_case(b"content-length") {
        let number = std::str::from_utf8(value).ok().and_then(|text| text.parse().ok());
        let is_decimal = value.iter().all(u8::is_ascii_digit);
        if !is_decimal || number.is_none() || length.is_some() {
            return Err(BadHead::ContentLength);
        }
        *length = number;
    }
    let is_visible = |byte: &u8| *byte == b'\t' || !byte.is_ascii_control();
    if !line[colon + 1..].iter().all(is_visible) {
        return Err(BadHead::Header);
    }
    Ok((std::str::from_utf8(name).map_err(|_| BadHead::Header)?, value))
}

/// Whether a byte can be in a token (RFC 9110, section 5.6.2).
fn is_token(byte: u8) -> bool {
    TOKEN[usize::from(byte)]
}

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

#[cfg(test)]
mod tests;
