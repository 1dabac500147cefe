//! Finds secrets in text: a fast search for fixed texts, then one anchored pattern where one stands.

mod matcher;
mod rules;

use std::collections::VecDeque;

pub(crate) use matcher::Matcher;
pub(crate) use rules::PRIVATE_KEY;
pub use rules::{RULES, Rule};

/// How far behind its first byte a secret is looked at. Streams hold that much back.
pub const LOOKAHEAD: usize = 8 << 10;

/// How many findings are kept; one is enough to fail.
const MOST_FINDINGS: usize = 16;

/// Where a secret was found. Never what it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The rule's name.
    pub rule: &'static str,
    /// The offset in the stream.
    pub offset: u64,
}

/// Scans a stream of chunks with memory that does not grow with the stream.
#[derive(Debug)]
pub struct Scanner {
    matcher: &'static Matcher,
    /// The end of the stream so far: one byte for the look back, and what has not seen its lookahead.
    tail: Vec<u8>,
    /// Where in the tail the next secret may start.
    next: usize,
    /// The stream's offset of the tail's first byte.
    offset: u64,
    findings: VecDeque<Finding>,
}

impl Scanner {
    /// A scanner at the start of a stream.
    #[must_use]
    pub fn new() -> Self {
        let matcher = Matcher::shared();
        Self { matcher, tail: Vec::new(), next: 0, offset: 0, findings: VecDeque::new() }
    }

    /// Scans the next chunk.
    pub fn push(&mut self, chunk: &[u8]) {
        if chunk.len() <= LOOKAHEAD {
            self.tail.extend_from_slice(chunk);
            if self.tail.len() > 4 * LOOKAHEAD {
                self.scan_tail(self.tail.len() - LOOKAHEAD);
            }
            return;
        }
        // Only the seam is copied; the chunk itself is scanned where it lies. The chunk's first byte belongs to the
        // seam, because only there the byte before it can be seen.
        let seam = self.tail.len();
        let base = self.offset + seam as u64;
        let mut tail = std::mem::take(&mut self.tail);
        tail.extend_from_slice(&chunk[..LOOKAHEAD]);
        self.scan(&tail, self.next, seam + 1, self.offset);
        let until = chunk.len() - LOOKAHEAD;
        self.scan(chunk, 1, until, base);
        let until = until.max(1);
        tail.clear();
        tail.extend_from_slice(&chunk[until - 1..]);
        (self.tail, self.offset, self.next) = (tail, base + until as u64 - 1, 1);
    }

    /// Scans what was held back and says what was found, in order, at most the first few.
    #[must_use]
    pub fn finish(mut self) -> Vec<Finding> {
        self.scan_tail(self.tail.len());
        self.findings.into()
    }

    fn scan_tail(&mut self, until: usize) {
        let tail = std::mem::take(&mut self.tail);
        self.scan(&tail, self.next, until, self.offset);
        self.tail = tail;
        let until = until.max(self.next);
        let keep = until.saturating_sub(1);
        self.tail.drain(..keep);
        self.offset += keep as u64;
        self.next = until - keep;
    }

    fn scan(&mut self, text: &[u8], from: usize, until: usize, base: u64) {
        if self.findings.len() >= MOST_FINDINGS {
            return;
        }
        self.matcher.find(text, from, until, |found| {
            self.findings.push_back(Finding { rule: found.rule, offset: base + found.start as u64 });
            self.findings.len() < MOST_FINDINGS
        });
    }
}

impl Default for Scanner {
    fn default() -> Self {
        Self::new()
    }
}

/// Scans a whole text.
#[must_use]
pub fn scan(text: &[u8]) -> Vec<Finding> {
    let mut scanner = Scanner::new();
    scanner.push(text);
    scanner.finish()
}
