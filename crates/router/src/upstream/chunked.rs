//! A body that comes in chunks, taken apart as it comes.

use bytes::{Buf as _, Bytes, BytesMut};

/// The longest line that says how large a chunk is. What stands behind the size is thrown away.
const LONGEST_LINE: usize = 4 << 10;
/// The most that may follow the last chunk.
const MOST_TRAILERS: usize = 16 << 10;

/// How far a body in chunks has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Chunked {
    /// Before the size of a chunk.
    Size,
    /// In a chunk, of which this much is to come.
    Data(u64),
    /// Behind a chunk's data.
    DataEnd,
    /// Behind the last chunk, after this many bytes.
    Trailers(usize),
    /// Behind all of it.
    Over,
}

/// What comes next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// Data of a chunk, as much as is there.
    Data(Bytes),
    /// More has to come first.
    More,
    /// Nothing.
    Over,
}

/// It is no body in chunks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NotChunked;

impl Chunked {
    /// Takes the next data out of what came.
    pub(super) fn next(&mut self, came: &mut BytesMut) -> Result<Next, NotChunked> {
        loop {
            match self {
                Self::Over => return Ok(Next::Over),
                Self::Data(_) if came.is_empty() => return Ok(Next::More),
                Self::Data(left) => {
                    let here = usize::try_from(*left).unwrap_or(usize::MAX).min(came.len());
                    *left -= here as u64;
                    if *left == 0 {
                        *self = Self::DataEnd;
                    }
                    return Ok(Next::Data(came.split_to(here).freeze()));
                }
                Self::DataEnd => match &**came {
                    [b'\r', b'\n', ..] => {
                        came.advance(2);
                        *self = Self::Size;
                    }
                    [] | [b'\r'] => return Ok(Next::More),
                    _ => return Err(NotChunked),
                },
                Self::Size => {
                    let Some(line) = line(came, LONGEST_LINE)? else { return Ok(Next::More) };
                    *self = match size(&came[..line])? {
                        0 => Self::Trailers(0),
                        size => Self::Data(size),
                    };
                    came.advance(line + 2);
                }
                Self::Trailers(seen) => {
                    let Some(line) = line(came, MOST_TRAILERS - *seen)? else { return Ok(Next::More) };
                    came.advance(line + 2);
                    *self = match *seen + line + 2 {
                        _ if line == 0 => Self::Over,
                        seen if seen > MOST_TRAILERS => return Err(NotChunked),
                        seen => Self::Trailers(seen),
                    };
                }
            }
        }
    }
}

/// How long the line is that begins here, without its end; none if its end has not come.
fn line(came: &[u8], longest: usize) -> Result<Option<usize>, NotChunked> {
    match memchr::memchr2(b'\r', b'\n', came) {
        Some(end) if end > longest => Err(NotChunked),
        Some(end) => match &came[end..] {
            [b'\r', b'\n', ..] => Ok(Some(end)),
            [b'\r'] => Ok(None),
            _ => Err(NotChunked),
        },
        None if came.len() > longest => Err(NotChunked),
        None => Ok(None),
    }
}

/// The size that a line says: hexadecimal digits, and maybe something behind a semicolon.
fn size(line: &[u8]) -> Result<u64, NotChunked> {
    let digits = line.split(|byte| *byte == b';').next().unwrap_or_default();
    let digits = digits.trim_ascii_end();
    // One digit less than would fit, so that nothing overflows.
    if digits.is_empty() || digits.len() > 15 {
        return Err(NotChunked);
    }
    digits.iter().try_fold(0, |size: u64, digit| {
        let value = char::from(*digit).to_digit(16).ok_or(NotChunked)?;
        Ok(size << 4 | u64::from(value))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a body gives, and what is left behind it.
    type Whole = (Vec<u8>, Vec<u8>);

    /// None, if it did not end.
    fn all(parts: &[&[u8]]) -> Result<Option<Whole>, NotChunked> {
        let (mut chunked, mut came, mut data) = (Chunked::Size, BytesMut::new(), Vec::new());
        let mut is_over = false;
        for part in parts {
            came.extend_from_slice(part);
            while !is_over {
                match chunked.next(&mut came)? {
                    Next::Data(more) => data.extend_from_slice(&more),
                    Next::More => break,
                    Next::Over => is_over = true,
                }
            }
        }
        Ok(is_over.then(|| (data, came.to_vec())))
    }

    #[test]
    fn a_body_is_the_same_however_it_is_cut() {
        let body = b"4\r\nfour\r\n0A; a=b\r\n0123456789\r\n1 \r\n\r\r\n0\r\ntrailer: x\r\n\r\nHTTP";
        let whole = Ok(Some((b"four0123456789\r".to_vec(), b"HTTP".to_vec())));
        for first in 0..=body.len() {
            for second in first..=body.len() {
                assert_eq!(all(&[&body[..first], &body[first..second], &body[second..]]), whole);
            }
        }
        let end = body.len() - b"HTTP".len();
        for cut in 0..end {
            assert_eq!(all(&[&body[..cut]]), Ok(None), "cut at {cut}");
        }
    }

    #[test]
    fn what_readers_take_differently_is_no_body() {
        let long = format!("1;{}\r\na\r\n0\r\n\r\n", "x".repeat(LONGEST_LINE));
        let trailers = format!("0\r\n{}\r\n", "x: y\r\n".repeat(MOST_TRAILERS / 6 + 1));
        for bad in [
            "\r\n",
            "zz\r\n",
            "-1\r\n",
            "+1\r\n",
            "0x1\r\n",
            " 1\r\n",
            ";\r\n",
            "1\na\r\n",
            "1\r1\r\n",
            "1\r\nab\r\n",
            "1\r\na\n",
            "1\r\na0\r\n\r\n",
            "0\r\nx: y\n\r\n",
            "0\r\nx: \ry\r\n\r\n",
            "1000000000000000\r\n",
            &long,
            &trailers,
        ] {
            let shown: String = bad.chars().take(40).collect();
            assert_eq!(all(&[bad.as_bytes()]), Err(NotChunked), "{shown:?}");
        }
    }
}
