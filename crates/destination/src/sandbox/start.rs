//! Starts a paused sandbox, and retries with a new one if bubblewrap times out.

use std::io;
use std::time::{Duration, Instant};

use super::Sandbox;
use super::process::{BootingSandbox, SandboxProcess, StartPipes};
use super::usage_monitor::WatchedDirs;
use crate::destination::{Process, StartError, Waiting};
use crate::job::Job;
use crate::loopback_relay::LoopbackRelay;

/// Each attempt has twice the time of the one before, and the last all that is left. bubblewrap takes milliseconds;
/// on a loaded machine, or while the kernel tears down many namespaces, it takes seconds, and a second attempt can
/// succeed sooner.
const FIRST_ATTEMPT_DIVISOR: u32 = 6;
/// The time to wait for an abandoned start, to undo it.
const CLEANUP_TIMEOUT: Duration = Duration::from_secs(20);

/// A job with its first paused sandbox, and what is needed for another attempt.
pub(super) struct PendingStart {
    pub(super) sandbox: Sandbox,
    pub(super) job: Job,
    pub(super) first: PausedSandbox,
}

impl Waiting for PendingStart {
    fn start(self: Box<Self>) -> Result<Box<dyn Process>, StartError> {
        self.run()
    }
}

impl PendingStart {
    /// Starts the job, in as many attempts as its time allows.
    pub(super) fn run(self) -> Result<Box<dyn Process>, StartError> {
        let Self { sandbox, job, first } = self;
        let (began, within) = (Instant::now(), job.limits.start);
        let mut patience = within / FIRST_ATTEMPT_DIVISOR;
        let (mut waiting, mut attempts) = (first, 1);
        loop {
            let left = within.saturating_sub(began.elapsed());
            let last = left < patience * 2;
            if let Some(mut process) = waiting.attach(if last { left } else { patience })? {
                process.relay = waiting.relay.take();
                let paths = WatchedDirs::of(&job.paths, &job.overlays)
                    .map_err(StartError::io("cannot watch the workspace"))?;
                let start_pipes = waiting.start_pipes.take().ok_or_else(lost)?;
                return Ok(Box::new(process.admit(start_pipes)?.watched(paths, &job.limits)?));
            }
            if last {
                return Err(StartError::Slow { program: "bubblewrap".to_owned(), within, attempts });
            }
            waiting = sandbox.spawn_paused(&job)?;
            (patience, attempts) = (patience * 2, attempts + 1);
        }
    }
}

/// A sandbox whose launcher waits for the start signal. It may still be booting.
pub(super) struct PausedSandbox {
    /// `None` after the start.
    pub(super) booting: Option<BootingSandbox>,
    pub(super) start_pipes: Option<StartPipes>,
    pub(super) relay: Option<LoopbackRelay>,
}

impl PausedSandbox {
    /// Waits for the sandbox; `None` after `patience`, when it is killed.
    fn attach(&mut self, patience: Duration) -> Result<Option<SandboxProcess>, StartError> {
        SandboxProcess::attach(self.booting.take().ok_or_else(lost)?, patience)
    }
}

impl Drop for PausedSandbox {
    fn drop(&mut self) {
        // Through the pidfd of its init process, which alone reaches all descendants; and before the start pipes
        // are closed.
        drop(self.booting.take().map(|booting| SandboxProcess::attach(booting, CLEANUP_TIMEOUT)));
    }
}

fn lost() -> StartError {
    StartError::io("cannot start the sandbox")(io::Error::other("it was started before"))
}
