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

/// Copies a stream to its log, redacted, writes the transcript, and sends on the parsed lines. At the end it sends the number of unparsed ones.
pub(crate) fn pump(
    stream: Option<Box<dyn Read + Send>>,
    mut log: LogWriter,
    listener: Option<Listener>,
    transcriber: Option<Transcriber>,
    to_us: SyncSender<EngineOutput>,
) -> JoinHandle<Result<u64, WriteError>> {
    thread::spawn(move || {
        let Some(mut stream) = stream else { return log.finish().map(|()| 0) };
        let (mut listener, mut transcriber) = (listener, transcriber);
        let is_answered = listener.as_ref().is_some_and(Listener::answers);
        let mut lines = if is_answered { LineSplitter::of_dialogue() } else { LineSplitter::new() };
        let mut buffer = vec![0; 64 << 10];
        let (mut written, mut unread) = (Ok(()), 0);
        // A stream that breaks off ends here like one that is closed; the exit says why.
        while let Ok(n @ 1..) = stream.read(&mut buffer) {
            // The engine must not stop because our disk is full, so it is read to its end whatever happens.
            if written.is_ok() {
                written = log.write_all(&buffer[..n]);
            }
            let _ = to_us.send(EngineOutput::Life);
            if let Some(listener) = &mut listener {
                lines.feed(&buffer[..n], |line| {
                    transcriber.iter_mut().for_each(|transcriber| transcriber.line(line));
                    unread += u64::from(!tell(listener, line, &to_us));
                });
            }
        }
        if let Some(listener) = &mut listener {
            lines.finish(|line| {
                transcriber.iter_mut().for_each(|transcriber| transcriber.line(line));
                unread += u64::from(!tell(listener, line, &to_us));
            });
        }
        let transcribed = transcriber.map_or(Ok(()), Transcriber::finish);
        log.finish()?;
        transcribed.map(|()| unread)
    })
}

/// Tells what a line says; whether it says anything.
fn tell(listener: &mut Listener, line: &[u8], to_us: &SyncSender<EngineOutput>) -> bool {
    let (said, turns) = listener.hear(line);
    let understood = said.is_some() || !turns.is_empty();
    for received in
        said.map(EngineOutput::AgentEvent).into_iter().chain(turns.into_iter().map(EngineOutput::Turn))
    {
        let _ = to_us.send(received);
    }
    understood
}
