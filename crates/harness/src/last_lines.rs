//! The last lines of a command's output, bounded and redacted.

use std::collections::VecDeque;
use std::io::{self, Write};

use herma_core::visible::visible_line;
use herma_evidence::Redactor;

/// How many of the last lines of a command are kept, and how much of one line is read and shown.
const MAX_LINES: usize = 40;
const MAX_LINE_BYTES: usize = 16 << 10;
const MAX_SHOWN: usize = 400;

/// The last lines of a stream of bytes.
#[derive(Default)]
pub(crate) struct LastLines {
    lines: VecDeque<Vec<u8>>,
    open: Vec<u8>,
}

impl LastLines {
    /// The lines, redacted as one text: a key can span several.
    pub(crate) fn take(&mut self, redactor: &Redactor) -> Vec<String> {
        let open = std::mem::take(&mut self.open);
        if !open.is_empty() {
            self.push(open);
        }
        let text = self.lines.drain(..).collect::<Vec<_>>().join(&b'\n');
        let text = redactor.redact(&String::from_utf8_lossy(&text));
        text.lines().map(|line| visible_line(line).chars().take(MAX_SHOWN).collect()).collect()
    }

    fn push(&mut self, line: Vec<u8>) {
        if self.lines.len() == MAX_LINES {
            self.lines.pop_front();
        }
        self.lines.push_back(line);
    }
}

impl Write for LastLines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        for byte in bytes {
            if *byte == b'\n' {
                let line = std::mem::take(&mut self.open);
                self.push(line);
            } else if self.open.len() < MAX_LINE_BYTES {
                self.open.push(*byte);
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
