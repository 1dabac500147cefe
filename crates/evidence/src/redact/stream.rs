//! Redacts a stream. The output depends on the bytes alone, never on how they were cut into writes.

use super::{Redactor, UNCLEAR, continues_word, mark};
use crate::secrets::{LOOKAHEAD, PRIVATE_KEY};

/// The buffered part of a line without end.
const WINDOW: usize = 64 << 10;
/// The longest escape of one byte in git and JSON, as far as the rules know it.
const MAX_ESCAPE_BYTES: usize = 4;
/// The longest private key; after it, text is ordinary again.
const MAX_KEY_TEXT_BYTES: usize = 64 << 10;
/// The start and the end of a private key's header, and the start of its footer.
const BEGIN: &str = "-----BEGIN ";
const HEADER_END: [&str; 2] = ["PRIVATE KEY-----", "PRIVATE KEY BLOCK-----"];
const END: &str = "-----END ";

/// Redacts a stream line by line, and a line without end window by window.
#[derive(Debug)]
pub struct Stream {
    redactor: Redactor,
    /// The first bytes of an incomplete character.
    partial: Vec<u8>,
    pending: String,
    state: StreamState,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StreamState {
    Plain,
    /// The last window ended inside a secret; the rest of the word belongs to it.
    InWord,
    /// Inside a private key, with this much of it taken out.
    InKey(usize),
}

impl Stream {
    /// A stream at its start.
    #[must_use]
    pub fn new(redactor: Redactor) -> Self {
        Self { redactor, partial: Vec::new(), pending: String::new(), state: StreamState::Plain }
    }

    /// Takes bytes in; `out` gets each piece of clean text that is certain.
    pub fn push(&mut self, bytes: &[u8], out: &mut dyn FnMut(&str)) {
        let joined;
        let mut rest = bytes;
        if !self.partial.is_empty() {
            let mut start = std::mem::take(&mut self.partial);
            start.extend_from_slice(bytes);
            joined = start;
            rest = &joined;
        }
        while !rest.is_empty() {
            match std::str::from_utf8(rest) {
                Ok(text) => {
                    self.text(text, out);
                    return;
                }
                Err(error) => {
                    let (valid, broken) = rest.split_at(error.valid_up_to());
                    self.text(std::str::from_utf8(valid).unwrap_or_default(), out);
                    let Some(length) = error.error_len() else {
                        self.partial = broken.to_vec();
                        return;
                    };
                    self.text("\u{fffd}", out);
                    rest = &broken[length..];
                }
            }
        }
    }

    /// Gives out what was held back.
    pub fn finish(&mut self, out: &mut dyn FnMut(&str)) {
        if !std::mem::take(&mut self.partial).is_empty() {
            self.text("\u{fffd}", out);
        }
        self.line(out);
    }

    fn text(&mut self, mut text: &str, out: &mut dyn FnMut(&str)) {
        while !text.is_empty() {
            let newline = text.bytes().position(|b| b == b'\n').map_or(text.len(), |at| at + 1);
            // Whole characters only, and at least one: the window may be exceeded by three bytes.
            let room = text.ceil_char_boundary((WINDOW - self.pending.len().min(WINDOW)).max(1));
            let (now, later) = text.split_at(newline.min(room));
            self.pending.push_str(now);
            text = later;
            if self.pending.ends_with('\n') {
                self.line(out);
            } else if self.pending.len() >= WINDOW {
                let cut = self.pending.floor_char_boundary(WINDOW - LOOKAHEAD);
                self.window(before_an_escape(&self.pending, cut), out);
            }
        }
    }

    /// Everything that is pending is a whole line, or all that will come.
    fn line(&mut self, out: &mut dyn FnMut(&str)) {
        while !self.pending.is_empty() {
            self.window(self.pending.len(), out);
        }
        if self.state == StreamState::InWord {
            self.state = StreamState::Plain;
        }
    }

    /// Gives out the pending text up to `cut`, or up to the end of the secret that crosses it.
    fn window(&mut self, cut: usize, out: &mut dyn FnMut(&str)) {
        let mut from = 0;
        match self.state {
            StreamState::Plain => {}
            StreamState::InWord => {
                from = self.pending.bytes().take_while(|b| continues_word(*b)).count();
                if from < self.pending.len() {
                    self.state = StreamState::Plain;
                }
            }
            StreamState::InKey(taken) => from = self.skip_key(taken, cut),
        }
        if from < cut && self.state == StreamState::Plain {
            let pending = std::mem::take(&mut self.pending);
            let (clean, end) = self.clean(&pending[from..], cut - from);
            self.pending = pending;
            out(&clean);
            from += end;
        }
        self.pending.drain(..from);
    }

    /// The length of pending text that still belongs to a private key; leaves the state at its end.
    fn skip_key(&mut self, taken: usize, cut: usize) -> usize {
        if let Some(at) = self.pending.find(END) {
            self.state = StreamState::Plain;
            return footer_end(&self.pending, at);
        }
        let part = &self.pending[..cut];
        let body = part.bytes().all(|b| b.is_ascii_alphanumeric() || b" +/=:,.-\\\"'\t\r\n|>".contains(&b));
        if body && taken + cut <= MAX_KEY_TEXT_BYTES {
            self.state = StreamState::InKey(taken + cut);
            return cut;
        }
        self.state = StreamState::Plain;
        0
    }

    /// The clean form of `text` up to about `cut`, and how much of `text` that is.
    fn clean(&mut self, text: &str, cut: usize) -> (String, usize) {
        let header = key_header(text).filter(|at| *at < cut);
        let cut = header.unwrap_or(cut);
        let mut clean = String::new();
        let mut at = 0;
        for part in self.redactor.replacements(text, cut) {
            clean.push_str(&text[at..part.start]);
            clean.push_str(&mark(part.rule));
            at = part.end;
            if at == text.len() {
                self.state = StreamState::InWord;
            }
        }
        if at < cut {
            clean.push_str(&text[at..cut]);
            at = cut;
        }
        if header.is_some() {
            clean.push_str(&mark(PRIVATE_KEY));
            if let Some(end) = text[at..].find(END) {
                at = footer_end(text, at + end);
            } else {
                clean.push_str(if text.ends_with('\n') { "\n" } else { "" });
                at = text.len();
                self.state = StreamState::InKey(0);
            }
        }
        if self.redactor.finds_secret(clean.as_bytes()) {
            let newline = if clean.ends_with('\n') { "\n" } else { "" };
            clean = mark(UNCLEAR) + newline;
        }
        (clean, at)
    }
}

/// The position of a private key's header.
fn key_header(text: &str) -> Option<usize> {
    text.match_indices(BEGIN).map(|(at, _)| at).find(|at| {
        let header =
            &text[at + BEGIN.len()..text.ceil_char_boundary((at + BEGIN.len() + 110).min(text.len()))];
        HEADER_END.iter().any(|end| header.contains(end))
    })
}

/// The end of the footer that starts at `at`.
fn footer_end(text: &str, at: usize) -> usize {
    let inside = at + END.len();
    match text[inside..].find("-----") {
        Some(dashes) => inside + dashes + "-----".len(),
        None => text.len(),
    }
}

/// The cut, or the start of an escape that it may split: the rest of an escape looks like the start of a word, and
/// a secret after it like the middle of that word.
fn before_an_escape(text: &str, cut: usize) -> usize {
    let from = cut.saturating_sub(MAX_ESCAPE_BYTES - 1);
    text.as_bytes()[from..cut].iter().position(|b| *b == b'\\').map_or(cut, |at| from + at)
}
