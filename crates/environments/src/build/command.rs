//! Runs one command of a build under its limits, until none of its processes is alive.

use std::convert::Infallible;
use std::io::{self, Read};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use herma_core::RunId;
use herma_destination::{Destination, Job, leftovers, wait_unless};

use super::error::{BuildError, CommandFailure, FailureReason};
use super::log::BuildLog;
use crate::layers::LayerKind;

/// The pause before the processes that hold a stream open are looked for again.
const HOLDER_INTERVAL: Duration = Duration::from_millis(100);
/// The longest wait for the end of a dead process's streams.
const STREAM_TIMEOUT: Duration = Duration::from_secs(30);

/// Runs commands until a common deadline.
pub(super) struct Runner<'a> {
    pub(super) destination: &'a dyn Destination,
    pub(super) run_id: RunId,
    pub(super) deadline: Instant,
    pub(super) is_cancelled: &'a (dyn Fn() -> bool + Sync),
}

/// The time until a deadline.
pub(super) fn seconds_left(deadline: Instant) -> Duration {
    deadline.saturating_duration_since(Instant::now())
}

impl Runner<'_> {
    pub(super) fn run(
        &self,
        kind: LayerKind,
        command: &str,
        job: &Job,
        log: &BuildLog,
    ) -> Result<(), BuildError> {
        log.stream().write(format!("$ {command}\n").as_bytes());
        let mut process = self.destination.start(job)?;
        let (open, closed) = channel::<Infallible>();
        let streams = [process.take_stdout(), process.take_stderr()];
        let pumps: Vec<_> = streams
            .into_iter()
            .flatten()
            .map(|stream| {
                let (log, open) = (log.clone(), open.clone());
                thread::spawn(move || {
                    copy(stream, &log);
                    drop(open);
                })
            })
            .collect();
        drop(open);
        let ended = wait_unless(process.as_mut(), seconds_left(self.deadline), || (self.is_cancelled)());
        let exceeded = process.exceeded_limit();
        // A daemon that the command started dies with it.
        process.kill_all()?;
        until_closed(&closed, self.run_id)?;
        for pump in pumps {
            let _ = pump.join();
        }
        let exit = ended?;
        if exit.is_none() && (self.is_cancelled)() {
            return Err(BuildError::Cancelled);
        }
        let reason = match exit {
            Some(exit) if exit.success() => return Ok(()),
            Some(exit) => exceeded.map_or(FailureReason::Exited(exit), FailureReason::Exceeded),
            None => FailureReason::TimedOut,
        };
        let (command, last_lines) = (command.to_owned(), log.last_lines());
        Err(CommandFailure { kind, command, reason, last_lines, denied: Vec::new(), egress: Vec::new() }
            .into())
    }
}

/// Waits for the end of the streams. Those that stay open are held by a process that was not found before.
fn until_closed(closed: &Receiver<Infallible>, run: RunId) -> io::Result<()> {
    let give_up = Instant::now() + STREAM_TIMEOUT;
    while Instant::now() < give_up {
        match closed.recv_timeout(HOLDER_INTERVAL) {
            Ok(_) | Err(RecvTimeoutError::Disconnected) => return Ok(()),
            Err(RecvTimeoutError::Timeout) => drop(leftovers::kill(run)?),
        }
    }
    Err(io::Error::other("something holds the output of a command open"))
}

fn copy(mut stream: Box<dyn Read + Send>, log: &BuildLog) {
    let mut log = log.stream();
    let mut buffer = vec![0; 64 << 10];
    while let Ok(read @ 1..) = stream.read(&mut buffer) {
        log.write(buffer.get(..read).unwrap_or_default());
    }
}
