//! The head of an upstream's answer: its status, its headers, and where its body ends.

use std::mem::MaybeUninit;

use bytes::{Buf as _, BytesMut};
use http::{HeaderMap, HeaderValue, StatusCode};
use httparse::Header;

use super::chunked::Chunked;
use super::headers;

/// The largest head that is taken.
const MOST: usize = 64 << 10;
/// The most headers.
const MOST_HEADERS: usize = 100;
/// What has room for those that are kept, and for what the router adds.
const ROOM: usize = 8;

/// The head of an answer.
#[derive(Debug)]
pub(super) struct AnswerHead {
    pub(super) status: StatusCode,
    /// Those that somebody looks at.
    pub(super) headers: HeaderMap,
    pub(super) framing: Framing,
    /// Whether the connection can be used again when the body is over.
    pub(super) is_kept: bool,
}

/// Where a body ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Framing {
    /// After this many bytes more.
    Length(u64),
    /// Where its chunks say.
    Chunked(Chunked),
    /// With the connection.
    Close,
}

/// What came is no answer of HTTP/1.1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NotHttp;

impl AnswerHead {
    /// Takes the head out of what came, once all of it is there. What only says that an answer will come is thrown away.
    pub(super) fn take(came: &mut BytesMut) -> Result<Option<Self>, NotHttp> {
        loop {
            let Some((head, size)) = parse(came)? else { return Ok(None) };
            came.advance(size);
            // Another protocol, which nobody asked for, is an answer of its own kind.
            if !head.status.is_informational() || head.status == StatusCode::SWITCHING_PROTOCOLS {
                return Ok(Some(head));
            }
        }
    }
}

/// The head that stands at the start, and its size.
fn parse(came: &[u8]) -> Result<Option<(AnswerHead, usize)>, NotHttp> {
    if came.is_empty() {
        return Ok(None);
    }
    let mut headers = [const { MaybeUninit::uninit() }; MOST_HEADERS];
    let mut response = httparse::Response::new(&mut []);
    let config = httparse::ParserConfig::default();
    let size = match config.parse_response_with_uninit_headers(&mut response, came, &mut headers) {
        Ok(httparse::Status::Complete(size)) if size <= MOST => size,
        Ok(httparse::Status::Partial) if came.len() <= MOST => return Ok(None),
        _ => return Err(NotHttp),
    };
    let (Some(version), Some(code)) = (response.version, response.code) else { return Err(NotHttp) };
    let status = StatusCode::from_u16(code).map_err(|_| NotHttp)?;
    let all = &*response.headers;
    let (framing, is_certain) = framing(version, status, all)?;
    let closes =
        values(all, "connection").any(|value| words(value).any(|word| word.eq_ignore_ascii_case(b"close")));
    let is_kept = is_certain && version == 1 && !closes && framing != Framing::Close;
    // Nobody looks at the others.
    let mut headers = HeaderMap::with_capacity(ROOM);
    for header in all {
        if let Some(name) = headers::kept(header.name) {
            headers.append(name, HeaderValue::from_bytes(header.value).map_err(|_| NotHttp)?);
        }
    }
    Ok(Some((AnswerHead { status, headers, framing, is_kept }, size)))
}

/// Where the body ends, and whether everybody would say so. Where others may say something else the connection is not used
/// again: what one takes for the rest of a body is another's answer.
fn framing(version: u8, status: StatusCode, headers: &[Header<'_>]) -> Result<(Framing, bool), NotHttp> {
    let length = length(headers)?;
    if status.is_informational() {
        return Ok((Framing::Length(0), false));
    }
    if matches!(status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED) {
        return Ok((Framing::Length(0), length.is_none_or(|length| length == 0)));
    }
    if let Some(coding) = values(headers, "transfer-encoding").flat_map(words).last() {
        if version == 0 {
            return Err(NotHttp);
        }
        let is_only = values(headers, "transfer-encoding").flat_map(words).count() == 1;
        let is_chunked = coding.eq_ignore_ascii_case(b"chunked");
        let framing = if is_chunked { Framing::Chunked(Chunked::Size) } else { Framing::Close };
        return Ok((framing, is_only && length.is_none()));
    }
    Ok(length.map_or((Framing::Close, false), |length| (Framing::Length(length), true)))
}

/// The length that is announced. Where several are, all say the same.
fn length(headers: &[Header<'_>]) -> Result<Option<u64>, NotHttp> {
    let mut length = None;
    for digits in values(headers, "content-length").flat_map(words) {
        let is_plain = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
        let number = std::str::from_utf8(digits).ok().and_then(|digits| digits.parse().ok());
        if !is_plain || number.is_none() || length.is_some_and(|known| Some(known) != number) {
            return Err(NotHttp);
        }
        length = number;
    }
    Ok(length)
}

fn values<'a>(headers: &'a [Header<'a>], name: &'a str) -> impl Iterator<Item = &'a [u8]> {
    headers.iter().filter(move |header| header.name.eq_ignore_ascii_case(name)).map(|header| header.value)
}

/// What stands between commas.
fn words(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take(text: &str) -> Result<Option<(u16, Framing, bool)>, NotHttp> {
        let head = AnswerHead::take(&mut BytesMut::from(text))?;
        Ok(head.map(|head| (head.status.as_u16(), head.framing, head.is_kept)))
    }

    #[test]
    fn where_a_body_ends_is_certain_or_its_connection_is_not_used_again() {
        let chunked = Framing::Chunked(Chunked::Size);
        let rows = [
            ("200 OK\r\ncontent-length: 5\r\n", Framing::Length(5), true),
            ("200 OK\r\ncontent-length: 5\r\ncontent-length: 5\r\n", Framing::Length(5), true),
            ("200 OK\r\ncontent-length: 5\r\nConnection: Close\r\n", Framing::Length(5), false),
            ("200 OK\r\ncontent-length: 5\r\nconnection: a, close\r\n", Framing::Length(5), false),
            ("200 OK\r\nTransfer-Encoding: Chunked\r\n", chunked, true),
            ("200 OK\r\ntransfer-encoding: chunked\r\ncontent-length: 5\r\n", chunked, false),
            ("200 OK\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n", chunked, false),
            ("200 OK\r\ntransfer-encoding: gzip, chunked\r\n", chunked, false),
            ("200 OK\r\ntransfer-encoding: gzip\r\ntransfer-encoding: chunked\r\n", chunked, false),
            ("200 OK\r\ntransfer-encoding: identity\r\n", Framing::Close, false),
            ("200 OK\r\n", Framing::Close, false),
            ("204 No Content\r\n", Framing::Length(0), true),
            ("304 Not Modified\r\ncontent-length: 5\r\n", Framing::Length(0), false),
            ("101 Switching Protocols\r\nupgrade: x\r\n", Framing::Length(0), false),
        ];
        for (text, framing, is_kept) in rows {
            let status = text[..3].parse().unwrap();
            let whole = format!("HTTP/1.1 {text}\r\n");
            assert_eq!(take(&whole), Ok(Some((status, framing, is_kept))), "{text:?}");
            for cut in 0..whole.len() {
                assert_eq!(take(&whole[..cut]), Ok(None), "{:?}", &whole[..cut]);
            }
            let old = whole.replacen("1.1", "1.0", 1);
            if !text.to_ascii_lowercase().contains("transfer-encoding") {
                assert_eq!(take(&old), Ok(Some((status, framing, false))), "{old:?}");
            }
        }
    }

    #[test]
    fn what_is_no_answer_is_none() {
        let many = format!("HTTP/1.1 200 OK\r\n{}\r\n", "a: b\r\n".repeat(MOST_HEADERS + 1));
        let large = format!("HTTP/1.1 200 OK\r\na: {}\r\n\r\n", "b".repeat(MOST));
        let endless = format!("HTTP/1.1 200 OK\r\na: {}", "b".repeat(MOST));
        for bad in [
            "SSH-2.0\r\n",
            "HTTP/2.0 200 OK\r\n\r\n",
            "HTTP/1.1 99 No\r\n\r\n",
            "HTTP/1.1 2000 No\r\n\r\n",
            "HTTP/1.1 200 OK\r\na b: c\r\n\r\n",
            "HTTP/1.1 200 OK\r\na: b\r\n c\r\n\r\n",
            "HTTP/1.1 200 OK\r\na: \0\r\n\r\n",
            "HTTP/1.1 200 OK\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\n",
            "HTTP/1.1 200 OK\r\ncontent-length: +5\r\n\r\n",
            "HTTP/1.1 200 OK\r\ncontent-length: \r\n\r\n",
            "HTTP/1.1 200 OK\r\ncontent-length: 99999999999999999999\r\n\r\n",
            "HTTP/1.0 200 OK\r\ntransfer-encoding: chunked\r\n\r\n",
            &many,
            &large,
            &endless,
        ] {
            let shown: String = bad.chars().take(80).collect();
            assert_eq!(take(bad), Err(NotHttp), "{shown:?}");
        }
    }

    #[test]
    fn what_only_announces_an_answer_is_thrown_away() {
        let text = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n";
        assert_eq!(take(text), Ok(None));
        let whole = format!("{text}HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\nx");
        let mut came = BytesMut::from(&*whole);
        let head = AnswerHead::take(&mut came).unwrap().unwrap();
        assert_eq!((head.status, &came[..]), (StatusCode::OK, &b"x"[..]));
    }
}
