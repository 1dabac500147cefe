//! Writes a call as its canonical line, straight into the buffer. The router does so for every call, and going through
//! serde took a seventh of all that it does for one. A test holds both together.

use std::io::Write as _;

use jiff::Timestamp;

use super::{Attempt, Door, Ended, ModelCall, TokensUsed};
use crate::Digest;
use crate::budget::Amount;

/// A JSON object that is being written. Keys come in the order of their names: who writes sees to that.
pub struct Object<'a> {
    out: &'a mut Vec<u8>,
    is_empty: bool,
}

impl<'a> Object<'a> {
    /// Begins an object.
    pub fn begin(out: &'a mut Vec<u8>) -> Self {
        out.push(b'{');
        Self { out, is_empty: true }
    }

    /// Ends it.
    pub fn end(self) {
        self.out.push(b'}');
    }

    /// Every caller has a key of its own, whose length is known there: so it is copied without a call.
    #[allow(clippy::inline_always, reason = "keys are most of a line, and this halves what they cost")]
    #[inline(always)]
    fn key(&mut self, key: &str) -> &mut Vec<u8> {
        self.out.extend_from_slice(if std::mem::take(&mut self.is_empty) { b"\"" } else { b",\"" });
        self.out.extend_from_slice(key.as_bytes());
        self.out.extend_from_slice(b"\":");
        self.out
    }

    /// A text.
    #[inline]
    pub fn text(&mut self, key: &str, value: &str) {
        text(self.key(key), value);
    }

    /// A number.
    #[inline]
    pub fn number(&mut self, key: &str, value: u64) {
        number(self.key(key), value);
    }

    /// Yes or no.
    #[inline]
    pub fn flag(&mut self, key: &str, value: bool) {
        self.key(key).extend_from_slice(if value { b"true" } else { b"false" });
    }

    /// A digest.
    #[inline]
    pub fn digest(&mut self, key: &str, value: &Digest) {
        let out = self.key(key);
        let mut text = *b"\"sha256:0000000000000000000000000000000000000000000000000000000000000000\"";
        for (two, byte) in text[8..].as_chunks_mut::<2>().0.iter_mut().zip(value.as_bytes()) {
            *two = HEX[usize::from(*byte)];
        }
        out.extend_from_slice(&text);
    }

    /// A moment.
    #[inline]
    pub fn time(&mut self, key: &str, value: Timestamp) {
        let out = self.key(key);
        // A vector takes everything.
        let _ = write!(out, "\"{value}\"");
    }

    /// An amount.
    #[inline]
    pub fn amount(&mut self, key: &str, value: Amount) {
        let mut object = self.object(key);
        object.number("micro_usd", value.micro_usd);
        object.number("requests", value.requests);
        object.number("tokens", value.tokens);
        object.end();
    }

    /// An object in this one. It has to be ended before anything else is written.
    #[inline]
    pub fn object(&mut self, key: &str) -> Object<'_> {
        Object::begin(self.key(key))
    }
}

fn text(out: &mut Vec<u8>, value: &str) {
    // All of them, without a stop at the first: so the compiler takes many at a time.
    let is_odd = |byte: u8| u8::from(byte < b' ') | u8::from(byte == b'"') | u8::from(byte == b'\\');
    if value.bytes().fold(0, |odd, byte| odd | is_odd(byte)) == 0 {
        out.push(b'"');
        out.extend_from_slice(value.as_bytes());
        out.push(b'"');
    } else {
        // A vector takes everything, and a text can always be written.
        let _ = serde_json::to_writer(out, value);
    }
}

fn number(out: &mut Vec<u8>, value: u64) {
    out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}

/// The two digits of every byte.
static HEX: [[u8; 2]; 256] = {
    let (mut hex, mut byte) = ([[0; 2]; 256], 0);
    while byte < hex.len() {
        let digits = b"0123456789abcdef";
        hex[byte] = [digits[byte >> 4], digits[byte & 15]];
        byte += 1;
    }
    hex
};

impl Door {
    /// The word that it is written as.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Chat => "chat",
            Self::Completions => "completions",
            Self::CountTokens => "count_tokens",
            Self::Embeddings => "embeddings",
            Self::Messages => "messages",
            Self::Responses => "responses",
        }
    }
}

impl Ended {
    /// The word that it is written as.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Answered => "answered",
            Self::Uncounted => "uncounted",
            Self::Refused => "refused",
            Self::Failed => "failed",
            Self::Cut => "cut",
            Self::ClientLeft => "client_left",
            Self::Interrupted => "interrupted",
        }
    }
}

impl ModelCall {
    /// Appends the canonical form.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        let mut line = Object::begin(out);
        let optional = |line: &mut Object<'_>, key, value: &Option<String>| {
            if let Some(value) = value {
                line.text(key, value);
            }
        };
        optional(&mut line, "answered", &self.answered);
        line.text("asked", &self.asked);
        list(line.key("attempts"), &self.attempts, |out, attempt| attempt.write(out));
        if let Some(call) = self.call {
            line.number("call", call);
        }
        line.amount("charged", self.charged);
        line.text("door", self.door.as_str());
        line.text("ended", self.ended.as_str());
        if let Some(first_byte) = self.first_byte_us {
            line.number("first_byte_us", first_byte);
        }
        line.number("latency_us", self.latency_us);
        line.digest("prev", &self.prev);
        optional(&mut line, "reason", &self.reason);
        line.digest("request", &self.request);
        if let Some(response) = &self.response {
            line.digest("response", response);
        }
        if !self.rewrites.is_empty() {
            list(line.key("rewrites"), &self.rewrites, |out, rewrite| text(out, rewrite));
        }
        line.text("run", &self.run);
        line.number("seq", self.seq);
        line.flag("settled", self.settled);
        line.number("status", u64::from(self.status));
        optional(&mut line, "stop", &self.stop);
        line.flag("stream", self.stream);
        line.time("time", self.time);
        if self.tool_calls > 0 {
            line.number("tool_calls", self.tool_calls);
        }
        if let Some(used) = &self.used {
            used.write(line.object("used"));
        }
        line.end();
    }
}

impl Attempt {
    fn write(&self, out: &mut Vec<u8>) {
        let mut object = Object::begin(out);
        object.amount("charged", self.charged);
        object.text("model", &self.model);
        object.text("outcome", &self.outcome);
        if let Some(status) = self.status {
            object.number("status", u64::from(status));
        }
        object.text("upstream", &self.upstream);
        object.end();
    }
}

impl TokensUsed {
    fn write(&self, mut object: Object<'_>) {
        object.number("cache_write", self.cache_write);
        object.number("cached_input", self.cached_input);
        object.number("input", self.input);
        object.number("output", self.output);
        object.number("reasoning", self.reasoning);
        object.end();
    }
}

fn list<T>(out: &mut Vec<u8>, items: &[T], write: impl Fn(&mut Vec<u8>, &T)) {
    out.push(b'[');
    for (place, item) in items.iter().enumerate() {
        if place > 0 {
            out.push(b',');
        }
        write(out, item);
    }
    out.push(b']');
}
