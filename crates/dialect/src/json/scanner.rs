//! A strict scanner: it moves over a text value by value and copies nothing.

use std::ops::Range;

use super::text::plain_length;
use super::{Flaw, MAX_DEPTH, Text};

/// The kind of a value, by its first byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Object,
    Array,
    String,
    Number,
    Bool,
    Null,
}

/// A position in a text, and its depth.
#[derive(Debug)]
pub(crate) struct Scanner<'a> {
    text: &'a str,
    at: usize,
    depth: u32,
}

impl<'a> Scanner<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Self { text, at: 0, depth: 0 }
    }

    /// The part of the text that a span names.
    pub(crate) fn slice(&self, span: Range<usize>) -> &'a str {
        &self.text[span]
    }

    /// Where the scanner stands, after white space.
    pub(crate) fn position(&mut self) -> usize {
        self.space();
        self.at
    }

    /// The kind of the next value.
    pub(crate) fn kind(&mut self) -> Result<Kind, Flaw> {
        self.space();
        match self.byte() {
            Some(b'{') => Ok(Kind::Object),
            Some(b'[') => Ok(Kind::Array),
            Some(b'"') => Ok(Kind::String),
            Some(b'-' | b'0'..=b'9') => Ok(Kind::Number),
            Some(b't' | b'f') => Ok(Kind::Bool),
            Some(b'n') => Ok(Kind::Null),
            Some(_) => Err(self.flaw("a value is expected")),
            None => Err(self.flaw("it ends where a value is expected")),
        }
    }

    /// Goes into the object or array that `kind` has seen.
    pub(crate) fn enter(&mut self) -> Result<(), Flaw> {
        if self.depth == MAX_DEPTH {
            return Err(Flaw::TooDeep { at: self.at });
        }
        self.depth += 1;
        self.at += 1;
        Ok(())
    }

    /// The next key of the object, with its value coming next; `None` leaves the object.
    pub(crate) fn next_key(&mut self, first: bool) -> Result<Option<Text<'a>>, Flaw> {
        if !self.next(b'}', first)? {
            return Ok(None);
        }
        let key = self.string()?;
        self.space();
        if self.byte() != Some(b':') {
            return Err(self.flaw("a colon is expected"));
        }
        self.at += 1;
        Ok(Some(key))
    }

    /// Whether another item of the array comes next; `false` leaves the array.
    pub(crate) fn next_item(&mut self, first: bool) -> Result<bool, Flaw> {
        self.next(b']', first)
    }

    /// Moves to the next entry of what ends with `close`.
    fn next(&mut self, close: u8, first: bool) -> Result<bool, Flaw> {
        self.space();
        match self.byte() {
            Some(byte) if byte == close => {
                self.at += 1;
                self.depth -= 1;
                return Ok(false);
            }
            Some(b',') if !first => {
                self.at += 1;
                self.space();
            }
            Some(_) if first => {}
            _ => return Err(self.flaw("a comma or the end of the object or array is expected")),
        }
        Ok(true)
    }

    /// The string that comes next.
    pub(crate) fn string(&mut self) -> Result<Text<'a>, Flaw> {
        self.space();
        if self.byte() != Some(b'"') {
            return Err(self.flaw("a string is expected"));
        }
        self.at += 1;
        let (start, mut escaped) = (self.at, false);
        loop {
            let rest = &self.text.as_bytes()[self.at..];
            self.at += plain_length(rest);
            match self.byte() {
                Some(b'"') => {
                    let raw = &self.text[start..self.at];
                    self.at += 1;
                    return Ok(Text { raw, escaped });
                }
                Some(b'\\') => {}
                Some(_) => return Err(self.flaw("a string has a control character")),
                None => return Err(self.flaw("a string is not closed")),
            }
            escaped = true;
            self.escape()?;
        }
    }

    /// Moves over one escape.
    fn escape(&mut self) -> Result<(), Flaw> {
        let rest = &self.text.as_bytes()[self.at..];
        let length = match rest.get(1) {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => 2,
            Some(b'u') if rest.get(2..6).is_some_and(|four| four.iter().all(u8::is_ascii_hexdigit)) => 6,
            _ => return Err(self.flaw("an escape is not one of JSON")),
        };
        self.at += length;
        Ok(())
    }

    /// The number that comes next, as it is written.
    pub(crate) fn number(&mut self) -> Result<&'a str, Flaw> {
        self.space();
        let start = self.at;
        self.take(b"-");
        match self.byte() {
            Some(b'0') => self.at += 1,
            Some(b'1'..=b'9') => self.digits()?,
            _ => return Err(self.flaw("a number is expected")),
        }
        if self.take(b".") {
            self.digits()?;
        }
        if self.take(b"eE") {
            self.take(b"+-");
            self.digits()?;
        }
        Ok(&self.text[start..self.at])
    }

    /// The truth value that comes next.
    pub(crate) fn boolean(&mut self) -> Result<bool, Flaw> {
        if self.word("true") {
            return Ok(true);
        }
        if self.word("false") { Ok(false) } else { Err(self.flaw("a value is expected")) }
    }

    /// Moves over the next value and returns its span.
    pub(crate) fn skip(&mut self) -> Result<Range<usize>, Flaw> {
        let start = self.position();
        let base = self.depth;
        // One bit for each level: whether it is an object. As many levels as there are bits.
        let mut objects = 0_u64;
        loop {
            let mut inside = match self.kind()? {
                Kind::Object => {
                    self.enter()?;
                    objects = objects << 1 | 1;
                    self.next_key(true)?.is_some()
                }
                Kind::Array => {
                    self.enter()?;
                    objects <<= 1;
                    self.next_item(true)?
                }
                other => {
                    self.scalar(other)?;
                    if self.depth == base {
                        return Ok(start..self.at);
                    }
                    self.more(objects)?
                }
            };
            while !inside {
                objects >>= 1;
                if self.depth == base {
                    return Ok(start..self.at);
                }
                inside = self.more(objects)?;
            }
        }
    }

    /// Whether the innermost level has another entry.
    fn more(&mut self, objects: u64) -> Result<bool, Flaw> {
        if objects & 1 == 1 { Ok(self.next_key(false)?.is_some()) } else { self.next_item(false) }
    }

    /// Moves over a value that holds no others.
    fn scalar(&mut self, kind: Kind) -> Result<(), Flaw> {
        match kind {
            Kind::String => self.string().map(drop),
            Kind::Number => self.number().map(drop),
            Kind::Bool => self.boolean().map(drop),
            Kind::Null | Kind::Object | Kind::Array if self.word("null") => Ok(()),
            Kind::Null | Kind::Object | Kind::Array => Err(self.flaw("a value is expected")),
        }
    }

    /// That nothing but white space is left.
    pub(crate) fn end(&mut self) -> Result<(), Flaw> {
        self.space();
        if self.at == self.text.len() { Ok(()) } else { Err(self.flaw("something follows the value")) }
    }

    fn digits(&mut self) -> Result<(), Flaw> {
        let start = self.at;
        while matches!(self.byte(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        if self.at == start { Err(self.flaw("a digit is expected")) } else { Ok(()) }
    }

    fn take(&mut self, any_of: &[u8]) -> bool {
        let found = self.byte().is_some_and(|byte| any_of.contains(&byte));
        self.at += usize::from(found);
        found
    }

    fn word(&mut self, word: &str) -> bool {
        self.space();
        let found = self.text.as_bytes()[self.at..].starts_with(word.as_bytes());
        self.at += if found { word.len() } else { 0 };
        found
    }

    fn space(&mut self) {
        while matches!(self.byte(), Some(b' ' | b'\n' | b'\r' | b'\t')) {
            self.at += 1;
        }
    }

    fn byte(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn flaw(&self, what: &'static str) -> Flaw {
        Flaw::Malformed { at: self.at, what }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn whole(text: &str) -> Result<Range<usize>, Flaw> {
        let mut scanner = Scanner::new(text);
        let span = scanner.skip()?;
        scanner.end()?;
        Ok(span)
    }

    #[test]
    fn depth_is_bounded_everywhere_and_counted_in_levels() {
        for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
            let nested = |n: usize| format!("{}1{}", open.repeat(n), close.repeat(n));
            assert!(whole(&nested(64)).is_ok());
            assert!(matches!(whole(&nested(65)), Err(Flaw::TooDeep { .. })));
            assert!(matches!(whole(&nested(100_000)), Err(Flaw::TooDeep { .. })));
        }
        let mixed = format!("{}1{}", "[{\"a\":".repeat(32), "}]".repeat(32));
        assert!(whole(&mixed).is_ok());
    }

    #[test]
    fn invalid_json_that_other_parsers_accept_is_refused() {
        for text in [
            "",
            " ",
            "[1,]",
            "{\"a\":1,}",
            "[,1]",
            "{,}",
            "01",
            "-",
            "1.",
            "1e",
            "+1",
            ".5",
            "NaN",
            "nul",
            "{a:1}",
            "{'a':1}",
            "\"\\x41\"",
            "\"\\u12g4\"",
            "\"a\nb\"",
            "\"a",
            "1 2",
            "// c\n1",
            "\u{feff}1",
            "[1}",
            "{\"a\"}",
            "{\"a\":}",
            "truefalse",
        ] {
            assert!(whole(text).is_err(), "{text:?}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn it_accepts_what_serde_json_accepts(text in r#"[\[\]{}:,"\\a0-9eE.+tn\- u\n]{0,24}"#) {
            let theirs = serde_json::from_str::<serde::de::IgnoredAny>(&text).is_ok();
            prop_assert_eq!(whole(&text).is_ok(), theirs, "{}", text);
        }

        #[test]
        fn a_string_means_what_serde_json_reads(text in any::<String>()) {
            let written = serde_json::to_string(&text).unwrap();
            let read = Scanner::new(&written).string().unwrap().decode().into_owned();
            prop_assert_eq!(read, text);
        }
    }
}
