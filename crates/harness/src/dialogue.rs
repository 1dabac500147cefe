//! Who hears an engine, and herma's own voice where the engine has to be answered.

use std::io::Write;
use std::sync::mpsc::{Sender, channel};
use std::thread;

use herma_destination::View;
use herma_engines::{AgentEvent, Conversation, DialogueAction, Engine, OutputReader};

use crate::run::Run;

/// How much herma says to one engine. What is said waits for the engine to read it: one that asks without end, and never
/// reads, must not fill herma's memory.
const MOST_SAID: usize = 64 << 20;

/// Who hears what an engine says.
pub(crate) enum Listener {
    /// Somebody who only reads.
    Reader(Box<dyn OutputReader>),
    /// Somebody who answers.
    Dialogue(Box<dyn Conversation>),
}

impl Listener {
    /// Who hears this engine in this run.
    pub(crate) fn of(run: &Run<'_>, engine: &dyn Engine, view: &View) -> Self {
        let assignment = run.order.assignment();
        match engine.conversation(&assignment, view) {
            Some(conversation) => Self::Dialogue(conversation),
            None => Self::Reader(engine.reader(run.plan.contract_digest)),
        }
    }

    /// Whether the engine is spoken to.
    pub(crate) fn speaks(&self) -> bool {
        matches!(self, Self::Dialogue(_))
    }

    /// What herma says first.
    pub(crate) fn open(&mut self) -> Vec<DialogueAction> {
        match self {
            Self::Reader(_) => Vec::new(),
            Self::Dialogue(conversation) => conversation.open(),
        }
    }

    /// What a line says, and what herma does about it.
    pub(crate) fn hear(&mut self, line: &[u8]) -> (Option<AgentEvent>, Vec<DialogueAction>) {
        match self {
            Self::Reader(reader) => (reader.line(line), Vec::new()),
            Self::Dialogue(conversation) => conversation.hear(line),
        }
    }
}

/// herma's voice in a dialogue. Speaking never waits: an engine that does not read must not keep herma from its limits.
pub(crate) struct Voice {
    /// The lines that wait to be read; none where nothing more is said.
    lines: Option<Sender<Vec<u8>>>,
    left: usize,
    farewell: Option<String>,
    over: bool,
}

impl Voice {
    /// The voice that an engine hears on this stream; without one it hears nothing.
    pub(crate) fn new(stdin: Option<Box<dyn Write + Send>>) -> Self {
        let lines = stdin.map(|mut stdin| {
            let (lines, waiting) = channel::<Vec<u8>>();
            // It ends with the voice, or with the engine: who is dead reads no more, and the write fails.
            thread::spawn(move || {
                while let Ok(line) = waiting.recv() {
                    if stdin.write_all(&line).and_then(|()| stdin.flush()).is_err() {
                        return;
                    }
                }
            });
            lines
        });
        Self { lines, left: MOST_SAID, farewell: None, over: false }
    }

    /// Says a line. What is said to an engine that hears nothing any more is lost, as it would be with anybody.
    pub(crate) fn say(&mut self, line: &str) -> Result<(), String> {
        let Some(lines) = &self.lines else { return Ok(()) };
        let Some(left) = self.left.checked_sub(line.len() + 1) else {
            self.lines = None;
            return Err(format!("it asks without end: herma has said {MOST_SAID} bytes to it"));
        };
        self.left = left;
        let _ = lines.send(format!("{line}\n").into_bytes());
        Ok(())
    }

    /// What is said first where the engine has to be ended.
    pub(crate) fn prepare_farewell(&mut self, line: String) {
        self.farewell = Some(line);
    }

    /// Takes leave of an engine that is about to be ended; says whether there was anything to say.
    pub(crate) fn farewell(&mut self) -> bool {
        let Some(line) = self.farewell.take() else { return false };
        let said = !self.over && self.say(&line).is_ok();
        self.lines = None;
        said
    }

    /// Says nothing more: everything was said.
    pub(crate) fn end(&mut self) {
        self.over = true;
        self.lines = None;
    }

    /// Whether everything was said.
    pub(crate) fn is_over(&self) -> bool {
        self.over
    }
}
