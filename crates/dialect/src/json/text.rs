//! Strings as they are written, and as they are meant.

use std::borrow::Cow;

/// A string between its quotes, as it is written. The scanner has seen that its escapes are whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Text<'a> {
    pub(crate) raw: &'a str,
    pub(crate) escaped: bool,
}

impl<'a> Text<'a> {
    /// The decoded string. An unpaired surrogate becomes U+FFFD: clients send such halves when they truncate a text.
    pub(crate) fn decode(self) -> Cow<'a, str> {
        if !self.escaped {
            return Cow::Borrowed(self.raw);
        }
        let mut out = String::with_capacity(self.raw.len());
        self.decode_into(&mut out);
        Cow::Owned(out)
    }

    /// Appends the decoded string.
    pub(crate) fn decode_into(self, out: &mut String) {
        let mut rest = self.raw;
        while !rest.is_empty() {
            let (plain, escape) = rest.split_at(plain_length(rest.as_bytes()));
            out.push_str(plain);
            rest = escape.get(1..).map_or("", |escape| unescape(escape, out));
        }
    }
}

/// How many bytes come before the first quote, backslash or control character. Eight are looked at in one go: in code
/// the next backslash is never far, and calling a search for each would cost more than the search. Only where it is far
/// more are.
pub(super) fn plain_length(bytes: &[u8]) -> usize {
    const NEAR: usize = 32;
    let Some((near, far)) = bytes.split_first_chunk::<NEAR>() else { return by_eight(bytes) };
    let length = by_eight(near);
    if length < NEAR {
        return length;
    }
    let is_odd = |byte: u8| u8::from(byte < 0x20) | u8::from(byte == b'"') | u8::from(byte == b'\\');
    let is_plain = |block: &&[u8; NEAR]| block.iter().fold(0, |odd, byte| odd | is_odd(*byte)) == 0;
    let at = NEAR + NEAR * far.as_chunks().0.iter().take_while(is_plain).count();
    at + by_eight(&bytes[at..])
}

fn by_eight(bytes: &[u8]) -> usize {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const TOPS: u64 = ONES << 7;
    // The top bit of each byte that is below a bound, for bytes and bounds below 128. A borrow may set bits after
    // the first such byte, which are not used.
    let below = |eight: u64, bound: u64| eight.wrapping_sub(ONES * bound) & !eight & TOPS;
    let mut at = 0;
    for eight in bytes.as_chunks::<8>().0 {
        let eight = u64::from_le_bytes(*eight);
        let (quotes, backslashes) = (eight ^ (ONES * u64::from(b'"')), eight ^ (ONES * u64::from(b'\\')));
        let found = below(eight, 0x20) | below(quotes, 1) | below(backslashes, 1);
        if found != 0 {
            return at + found.trailing_zeros() as usize / 8;
        }
        at += 8;
    }
    at + bytes[at..].iter().take_while(|byte| !matches!(byte, b'"' | b'\\' | 0..0x20)).count()
}

/// Appends the decoded escape, which starts after its backslash. Returns the rest of the text.
fn unescape<'a>(escape: &'a str, out: &mut String) -> &'a str {
    let plain = match escape.as_bytes().first() {
        Some(b'b') => '\u{8}',
        Some(b'f') => '\u{c}',
        Some(b'n') => '\n',
        Some(b'r') => '\r',
        Some(b't') => '\t',
        Some(b'u') => return unicode(&escape[1..], out),
        Some(other) => char::from(*other),
        None => return "",
    };
    out.push(plain);
    &escape[1..]
}

/// Appends the character of four hexadecimal digits, or of two such escapes that are a pair.
fn unicode<'a>(digits: &'a str, out: &mut String) -> &'a str {
    let Some((first, rest)) = unit(digits) else { return "" };
    if let Some(single) = char::from_u32(first) {
        out.push(single);
        return rest;
    }
    let low = rest.strip_prefix("\\u").and_then(unit).filter(|(low, _)| (0xdc00..0xe000).contains(low));
    match low {
        Some((low, behind)) if first < 0xdc00 => {
            let pair = 0x10000 + ((first - 0xd800) << 10) + (low - 0xdc00);
            out.push(char::from_u32(pair).unwrap_or(char::REPLACEMENT_CHARACTER));
            behind
        }
        _ => {
            out.push(char::REPLACEMENT_CHARACTER);
            rest
        }
    }
}

/// One UTF-16 unit from four hexadecimal digits, and what follows it.
fn unit(digits: &str) -> Option<(u32, &str)> {
    let (four, rest) = digits.split_at_checked(4)?;
    Some((u32::from_str_radix(four, 16).ok()?, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meant(raw: &str) -> String {
        Text { raw, escaped: raw.contains('\\') }.decode().into_owned()
    }

    #[test]
    fn escapes_mean_what_json_says() {
        assert_eq!(meant(r#"a\"\\\/\b\f\n\r\tz"#), "a\"\\/\u{8}\u{c}\n\r\tz");
        assert_eq!(meant(r"mod\u0065l"), "model");
        assert_eq!(meant(r"\ud83d\ude00!"), "😀!");
        assert_eq!(meant("ü😀"), "ü😀");
    }

    #[test]
    fn every_byte_that_is_not_plain_is_found_at_every_place() {
        for plain in [b' ', b'!', b'#', b'[', b']', 0x7f, 0x80, 0xa2, 0xdc, 0xff] {
            for at in 0..109 {
                let mut bytes = [plain; 109];
                assert_eq!(plain_length(&bytes), bytes.len());
                for special in (0..0x20).chain(*b"\"\\") {
                    bytes[at] = special;
                    assert_eq!(plain_length(&bytes), at, "{special} among {plain}");
                }
            }
        }
    }

    #[test]
    fn half_a_pair_is_replaced_and_nothing_behind_it_is_lost() {
        assert_eq!(meant(r"a\ud83d"), "a\u{fffd}");
        assert_eq!(meant(r"\ude00b"), "\u{fffd}b");
        assert_eq!(meant(r"\ud83d\u0041"), "\u{fffd}A");
        assert_eq!(meant(r"\ud83d\ud83d\ude00"), "\u{fffd}😀");
        assert_eq!(meant(r"\ude00\ude00"), "\u{fffd}\u{fffd}");
    }
}
