//! The reader of an engine's stdout, and the writer of its stdin where the engine holds a dialogue.

use std::io::Write;
use std::sync::mpsc::{Sender, channel};
use std::thread;

use herma_destination::View;
use herma_engines::{AgentEvent, Conversation, DialogueAction, Engine, OutputReader};

use crate::context::RunContext;

/// The most bytes to one engine's stdin. Lines wait in memory until the engine reads them: one that asks without end must not
/// fill it.
const MAX_STDIN_BYTES: usize = 64 << 20;

/// Reads an engine's stdout.
pub(crate) enum Listener {
    /// Only reads.
    Reader(Box<dyn OutputReader>),
    /// Reads and answers.
    Dialogue(Box<dyn Conversation>),
}

impl Listener {
    /// The listener of this engine in this run.
    pub(crate) fn of(ctx: &RunContext<'_>, engine: &dyn Engine, view: &View) -> Self {
        let assignment = ctx.order.assignment();
        match engine.conversation(&assignment, view) {
            Some(conversation) => Self::Dialogue(conversation),
            None => Self::Reader(engine.reader(ctx.plan.contract_digest)),
        }
    }

    /// Whether it answers the engine.
    pub(crate) fn answers(&self) -> bool {
        matches!(self, Self::Dialogue(_))
    }

    /// herma's first turns.
    pub(crate) fn open(&mut self) -> Vec<DialogueAction> {
        match self {
            Self::Reader(_) => Vec::new(),
            Self::Dialogue(conversation) => conversation.open(),
        }
    }

    /// The meaning of a line, and herma's turns after it.
    pub(crate) fn hear(&mut self, line: &[u8]) -> (Option<AgentEvent>, Vec<DialogueAction>) {
        match self {
            Self::Reader(reader) => (reader.line(line), Vec::new()),
            Self::Dialogue(conversation) => conversation.hear(line),
        }
    }
}

/// Writes an engine's stdin. Writing never blocks: an engine that does not read must not keep herma from enforcing limits.
pub(crate) struct StdinWriter {
    /// The lines that wait to be written; none once stdin is closed.
    lines: Option<Sender<Vec<u8>>>,
    left: usize,
    shutdown_message: Option<String>,
    complete: bool,
}

impl StdinWriter {
    /// Writes to this stream; without one every line is dropped.
    pub(crate) fn new(stdin: Option<Box<dyn Write + Send>>) -> Self {
        let lines = stdin.map(|mut stdin| {
            let (lines, waiting) = channel::<Vec<u8>>();
            // The thread ends with the writer, or with the engine: a write to a closed pipe fails.
            thread::spawn(move || {
                while let Ok(line) = waiting.recv() {
                    if stdin.write_all(&line).and_then(|()| stdin.flush()).is_err() {
                        return;
                    }
                }
            });
            lines
        });
        Self { lines, left: MAX_STDIN_BYTES, shutdown_message: None, complete: false }
    }

    /// Writes a line. Writes to a closed stdin are dropped.
    pub(crate) fn write_line(&mut self, line: &str) -> Result<(), TooMuchInput> {
        let Some(lines) = &self.lines else { return Ok(()) };
        let Some(left) = self.left.checked_sub(line.len() + 1) else {
            self.lines = None;
            return Err(TooMuchInput);
        };
        self.left = left;
        let _ = lines.send(format!("{line}\n").into_bytes());
        Ok(())
    }

    /// Sets the message that an engine gets before it is ended.
    pub(crate) fn set_shutdown_message(&mut self, line: String) {
        self.shutdown_message = Some(line);
    }

    /// Sends the shutdown message and closes stdin; false where there is no message.
    pub(crate) fn shut_down(&mut self) -> bool {
        let Some(line) = self.shutdown_message.take() else { return false };
        let said = !self.complete && self.write_line(&line).is_ok();
        self.lines = None;
        said
    }

    /// Closes stdin: the dialogue is complete.
    pub(crate) fn close(&mut self) {
        self.complete = true;
        self.lines = None;
    }

    /// Whether the dialogue is complete.
    pub(crate) fn is_complete(&self) -> bool {
        self.complete
    }
}

/// The engine asks without end.
#[derive(Debug, thiserror::Error)]
#[error("it asks without end: herma has written {MAX_STDIN_BYTES} bytes to it")]
pub(crate) struct TooMuchInput;
