//! The log of a build: without secrets, and bounded.

use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

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
    stream: Stream,
    size: u64,
    last: VecDeque<String>,
    partial: String,
    failed: Option<io::Error>,
}

impl BuildLog {
    pub(super) fn create(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().append(true).create(true).mode(0o600).open(path)?;
        let (stream, last) = (Stream::new(Redactor::default()), VecDeque::new());
        Ok(Self(Arc::new(Mutex::new(State {
            file,
            stream,
            size: 0,
            last,
            partial: String::new(),
            failed: None,
        }))))
    }

    /// A failure to write shows when the log is finished.
    pub(super) fn write(&self, bytes: &[u8]) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut clean = String::new();
        state.stream.push(bytes, &mut |piece| clean.push_str(piece));
        state.keep(&clean);
    }

    /// The last lines so far.
    pub(super) fn last_lines(&self) -> Vec<String> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.flush();
        let partial = std::mem::take(&mut state.partial);
        state.keep_line(&partial);
        state.last.iter().cloned().collect()
    }

    pub(super) fn finish(&self) -> io::Result<()> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.flush();
        state.failed.take().map_or(Ok(()), Err)
    }
}

impl State {
    /// Writes what the redactor held back; a command's output ends here.
    fn flush(&mut self) {
        let mut clean = String::new();
        let stream = std::mem::replace(&mut self.stream, Stream::new(Redactor::default()));
        let mut stream = stream;
        stream.finish(&mut |piece| clean.push_str(piece));
        self.keep(&clean);
    }

    fn keep(&mut self, text: &str) {
        if self.size + text.len() as u64 <= MAX_BYTES {
            self.size += text.len() as u64;
            if let Err(error) = self.file.write_all(text.as_bytes()) {
                self.failed.get_or_insert(error);
            }
        }
        for piece in text.split_inclusive('\n') {
            self.partial.push_str(piece);
            if piece.ends_with('\n') {
                let line = std::mem::take(&mut self.partial);
                self.keep_line(&line);
            }
        }
        if self.partial.len() > 4 * MAX_LINE_CHARS {
            let line = std::mem::take(&mut self.partial);
            self.keep_line(&line);
        }
    }

    fn keep_line(&mut self, line: &str) {
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
