//! The log of a build: without secrets, and bounded.

use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use herma_core::visible::visible_line;
use herma_evidence::Redactor;
use herma_evidence::redact::Stream;

/// How much of the output is kept.
const MAX_BYTES: u64 = 64 << 20;
/// How many of the last lines a failure repeats, and how long each may be.
const LAST_LINES: usize = 20;
const MAX_LINE_CHARS: usize = 500;

/// A log that several streams write to.
#[derive(Clone, Debug)]
pub(super) struct BuildLog(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    file: File,
    size: u64,
    last: VecDeque<String>,
    failed: Option<io::Error>,
}

/// One stream of a log. Its lines are whole: a secret in one is found although another stream writes at the same time.
#[derive(Debug)]
pub(super) struct LogStream {
    log: BuildLog,
    stream: Stream,
    partial: String,
}

impl BuildLog {
    pub(super) fn create(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().append(true).create(true).mode(0o600).open(path)?;
        Ok(Self(Arc::new(Mutex::new(State { file, size: 0, last: VecDeque::new(), failed: None }))))
    }

    /// A new stream. The last piece of it is written when it is dropped.
    pub(super) fn stream(&self) -> LogStream {
        LogStream { log: self.clone(), stream: Stream::new(Redactor::default()), partial: String::new() }
    }

    /// The last lines of streams that ended, with every character spelled out that could control a terminal.
    pub(super) fn last_lines(&self) -> Vec<String> {
        let state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.last.iter().map(|line| visible_line(line)).collect()
    }

    /// An error if a stream could not be written.
    pub(super) fn finish(&self) -> io::Result<()> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.failed.take().map_or(Ok(()), Err)
    }
}

impl LogStream {
    /// A failure to write shows when the log is finished.
    pub(super) fn write(&mut self, bytes: &[u8]) {
        let mut clean = String::new();
        self.stream.push(bytes, &mut |piece| clean.push_str(piece));
        self.keep(&clean);
    }

    fn keep(&mut self, text: &str) {
        for piece in text.split_inclusive('\n') {
            self.partial.push_str(piece);
            if piece.ends_with('\n') || self.partial.len() > 4 * MAX_LINE_CHARS {
                let line = std::mem::take(&mut self.partial);
                self.log.0.lock().unwrap_or_else(PoisonError::into_inner).keep_line(&line);
            }
        }
    }
}

impl Drop for LogStream {
    fn drop(&mut self) {
        let mut clean = String::new();
        self.stream.finish(&mut |piece| clean.push_str(piece));
        self.keep(&clean);
        let rest = std::mem::take(&mut self.partial);
        self.log.0.lock().unwrap_or_else(PoisonError::into_inner).keep_line(&rest);
    }
}

impl State {
    fn keep_line(&mut self, line: &str) {
        if self.size + line.len() as u64 <= MAX_BYTES {
            self.size += line.len() as u64;
            if let Err(error) = self.file.write_all(line.as_bytes()) {
                self.failed.get_or_insert(error);
            }
        }
        let line = without_colors(line);
        let line = line.trim_end();
        if line.is_empty() {
            return;
        }
        if self.last.len() == LAST_LINES {
            self.last.pop_front();
        }
        self.last.push_back(line.chars().take(MAX_LINE_CHARS).collect());
    }
}

/// A line without the escape sequences by which programs color their output.
fn without_colors(line: &str) -> String {
    let mut pieces = line.split("\u{1b}[");
    let mut text = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let parameters = piece.trim_start_matches(|c: char| c.is_ascii_digit() || c == ';');
        match parameters.strip_prefix(['m', 'K']) {
            Some(rest) => text.push_str(rest),
            // Not a color: its letters are shown.
            None => text.extend(["\u{1b}[", piece]),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::without_colors;

    #[test]
    fn colors_are_removed_and_other_sequences_are_kept() {
        assert_eq!(without_colors("\u{1b}[1;31mERROR\u{1b}[m no\u{1b}[K"), "ERROR no");
        assert_eq!(without_colors("a\u{1b}[2Jb"), "a\u{1b}[2Jb");
        assert_eq!(without_colors("plain"), "plain");
    }
}
