//! Copies an engine's streams to their logs, and parses their lines.

use std::io::{Read, Write as _};
use std::sync::mpsc::SyncSender;
use std::thread::{self, JoinHandle};

use herma_engines::{AgentEvent, DialogueAction, LineSplitter};
use herma_evidence::{LogWriter, WriteError};

use crate::dialogue::Listener;
use crate::transcriber::Transcriber;

/// Output of the engine's streams.
pub(crate) enum EngineOutput {
    /// Some bytes: a sign of life.
    Life,
    /// Something that was understood.
    AgentEvent(AgentEvent),
    /// herma's reaction to it.
    Turn(DialogueAction),
}

/// The readers of the lines of standard output.
pub(crate) struct LineReaders {
    pub(crate) listener: Listener,
    pub(crate) transcriber: Transcriber,
}

/// Copies a stream to its log, redacted, and hands its lines to the readers. At the end it sends the number of lines that the
/// listener did not know.
pub(crate) fn pump(
    stream: Option<Box<dyn Read + Send>>,
    mut log: LogWriter,
    mut readers: Option<LineReaders>,
    to_us: SyncSender<EngineOutput>,
) -> JoinHandle<Result<u64, WriteError>> {
    thread::spawn(move || {
        let is_answered = readers.as_ref().is_some_and(|readers| readers.listener.answers());
        let mut lines = if is_answered { LineSplitter::of_dialogue() } else { LineSplitter::new() };
        let mut buffer = vec![0; 64 << 10];
        let (mut written, mut unread) = (Ok(()), 0);
        if let Some(mut stream) = stream {
            // A stream that breaks off ends here like one that is closed; the exit says why.
            while let Ok(n @ 1..) = stream.read(&mut buffer) {
                // The engine must not stop because our disk is full, so it is read to its end whatever happens.
                if written.is_ok() {
                    written = log.write_all(&buffer[..n]);
                }
                let _ = to_us.send(EngineOutput::Life);
                if let Some(readers) = &mut readers {
                    lines.feed(&buffer[..n], |line| unread += u64::from(!readers.line(line, &to_us)));
                }
            }
        }
        if let Some(mut readers) = readers {
            lines.finish(|line| unread += u64::from(!readers.line(line, &to_us)));
            log.finish()?;
            readers.transcriber.finish()?;
            return Ok(unread);
        }
        log.finish().map(|()| unread)
    })
}

impl LineReaders {
    /// Reads one line, and sends on its meaning; whether it has any.
    fn line(&mut self, line: &[u8], to_us: &SyncSender<EngineOutput>) -> bool {
        self.transcriber.line(line);
        let (said, turns) = self.listener.hear(line);
        let understood = said.is_some() || !turns.is_empty();
        for received in
            said.map(EngineOutput::AgentEvent).into_iter().chain(turns.into_iter().map(EngineOutput::Turn))
        {
            let _ = to_us.send(received);
        }
        understood
    }
}
