//! Runs verification commands, one after the other, each in a destination of its own, until none of its processes is alive.

use std::convert::Infallible;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use herma_core::RunId;
use herma_core::report::{ChangedByCommand, Verification, VerificationStatus};
use herma_destination::{Exit, Job, JobPaths, LimitName, Prepared, Process, leftovers, wait_unless};
use herma_git::CheckoutState;

use crate::context::RunContext;
use crate::environment_views::View;
use crate::error::Stop;
use crate::gates::Ready;
use crate::process_end::{HOLDER_INTERVAL, ProcessEnd, STREAM_TIMEOUT, limits};

/// The shell's exit codes for a command that does not exist or cannot be run.
const NOT_FOUND: [i32; 2] = [126, 127];

/// Where output goes.
pub(crate) type SharedLog = Arc<Mutex<dyn Write + Send>>;

/// The parts that every command shares.
pub(crate) struct CommandRunner<'a> {
    pub(crate) ready: &'a Ready,
    pub(crate) deadline: Instant,
    pub(crate) log: SharedLog,
    /// Makes the view of each command.
    pub(crate) views: CommandViews<'a>,
}

/// Makes the environment's view of the nth command; without an environment there is none, and the home is empty and in memory. Each
/// has a home of its own: code of the result that ran in one must not replace the programs of the next.
pub(crate) type CommandViews<'a> = &'a dyn Fn(usize) -> Result<Option<View>, Stop>;

/// A command that ran.
pub(crate) struct CommandRun {
    pub(crate) verification: Verification,
    /// Its exit; none if it took too long.
    pub(crate) exit: Option<Exit>,
    /// The limit that it exceeded.
    pub(crate) exceeded: Option<LimitName>,
}

/// The job of a verification command.
pub(crate) fn job(
    ctx: &RunContext<'_>,
    ready: &Ready,
    command: &str,
    checkout: PathBuf,
    home: Option<PathBuf>,
) -> Job {
    // By its path: programs of an environment come first in PATH.
    let argv = vec!["/bin/sh".into(), "-c".into(), command.into()];
    Job::new(ctx.plan.run_id, argv, JobPaths { home, ..JobPaths::new(checkout) })
        .with_env(ready.tools.env.clone())
        .with_search_path(ready.tools.search_path.clone())
        .with_mounts(ready.tools.mounts.clone())
        .with_limits(limits(ctx.contract))
}

impl CommandRunner<'_> {
    /// Runs the commands in a checkout, until the run is over or a command has changed tracked files: the commands after that
    /// one would test other files than those recorded.
    pub(crate) fn run_all(
        &self,
        ctx: &RunContext<'_>,
        checkout: &CheckoutState,
        mut first: Option<Prepared<'_>>,
    ) -> Result<Vec<Verification>, Stop> {
        let commands = &ctx.contract.terms.verify;
        let mut done = Vec::new();
        for (at, command) in commands.iter().enumerate().take_while(|_| !ctx.is_over()) {
            let mut one = self.run(ctx, (at, command), checkout.root(), first.take())?.verification;
            // Every process of the command is dead by now, so that nothing changes a file after this comparison.
            one.changed_files = ChangedByCommand::of(&checkout.changed());
            let changed = one.changed_files.is_some();
            if let Some(files) = &one.changed_files {
                write(&self.log, changed_notice(files, commands.len() - at - 1).as_bytes());
                if one.status == VerificationStatus::Passed {
                    one.status = VerificationStatus::ChangedFiles;
                }
            }
            done.push(one);
            if changed {
                break;
            }
        }
        Ok(done)
    }

    /// Runs one command, which may be prepared already.
    pub(crate) fn run(
        &self,
        ctx: &RunContext<'_>,
        (at, command): (usize, &str),
        checkout: &Path,
        prepared: Option<Prepared<'_>>,
    ) -> Result<CommandRun, Stop> {
        let (home, overlays) = (self.views)(at)?.map(|view| (view.home, view.overlays)).unzip();
        let overlays = overlays.unwrap_or_default();
        write(&self.log, format!("$ {command}\n").as_bytes());
        let started = Instant::now();
        let process = if let Some(prepared) = prepared {
            prepared.with_overlays(overlays).start()
        } else {
            let job = job(ctx, self.ready, command, checkout.to_owned(), home);
            self.ready.destination.start(&job.with_overlays(overlays))
        };
        self.attend(process?, ctx, command, started)
    }

    fn attend(
        &self,
        mut process: Box<dyn Process>,
        ctx: &RunContext<'_>,
        command: &str,
        started: Instant,
    ) -> Result<CommandRun, Stop> {
        let streams = [process.take_stdout(), process.take_stderr()];
        let (open, closed) = channel::<Infallible>();
        let pumps: Vec<_> = streams
            .into_iter()
            .flatten()
            .map(|stream| {
                let (log, open) = (Arc::clone(&self.log), open.clone());
                thread::spawn(move || {
                    copy_output(stream, &log);
                    drop(open);
                })
            })
            .collect();
        drop(open);
        let left = self.deadline.saturating_duration_since(started);
        let remaining = self.deadline.saturating_duration_since(Instant::now());
        let ended = wait_unless(process.as_mut(), remaining, || ctx.is_over());
        let exceeded = process.exceeded_limit();
        let ProcessEnd { exit, reason } = ProcessEnd::of(ended, process.as_ref());
        // Its remaining processes die with it, on time or not.
        process.kill_all()?;
        until_closed(&closed, ctx.plan.run_id)?;
        for pump in pumps {
            pump.join().map_err(|_| Stop::panicked("reading test output"))?;
        }
        let (status, exit_code) = judge(exit);
        // A path that changed nothing is not reported.
        let reason = reason.filter(|_| status == VerificationStatus::Failed);
        let cut_off = exit.is_none() && ctx.is_over();
        let ending = if cut_off {
            "[killed: the run goes no further]\n".to_owned()
        } else {
            ending(status, exit_code, reason.as_deref(), left)
        };
        write(&self.log, ending.as_bytes());
        let duration_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        let command = command.to_owned();
        let verification =
            Verification { command, status, exit_code, reason, changed_files: None, duration_ms };
        Ok(CommandRun { verification, exit, exceeded })
    }
}

fn changed_notice(files: &ChangedByCommand, left: usize) -> String {
    let rest = match left {
        0 => String::new(),
        left => format!("; not run: {left} more, which would test other files than those recorded"),
    };
    format!("[changed {files}{rest}]\n")
}

/// Waits for the end of the streams. Those that stay open are held by something that was not found before.
fn until_closed(closed: &Receiver<Infallible>, run: RunId) -> Result<(), Stop> {
    let give_up = Instant::now() + STREAM_TIMEOUT;
    while Instant::now() < give_up {
        match closed.recv_timeout(HOLDER_INTERVAL) {
            Ok(_) | Err(RecvTimeoutError::Disconnected) => return Ok(()),
            Err(RecvTimeoutError::Timeout) => drop(leftovers::kill(run)?),
        }
    }
    Err(Stop::internal("something holds the output of a verification command open"))
}

fn judge(ended: Option<Exit>) -> (VerificationStatus, Option<i32>) {
    match ended {
        None => (VerificationStatus::TimedOut, None),
        Some(exit) if exit.success() => (VerificationStatus::Passed, exit.code),
        Some(Exit { code: Some(code), .. }) if NOT_FOUND.contains(&code) => {
            (VerificationStatus::CommandMissing, Some(code))
        }
        Some(exit) => (VerificationStatus::Failed, exit.code),
    }
}

fn ending(status: VerificationStatus, code: Option<i32>, reason: Option<&str>, limit: Duration) -> String {
    let why = reason.map(|why| format!(": {why}")).unwrap_or_default();
    match (status, code) {
        (VerificationStatus::TimedOut, _) => format!("[killed after {:.1} s]\n", limit.as_secs_f64()),
        (_, Some(code)) => format!("[exit {code}{why}]\n"),
        (_, None) => format!("[killed{why}]\n"),
    }
}

/// Copies a stream to the log until its end.
pub(crate) fn copy_output(mut stream: Box<dyn Read + Send>, log: &SharedLog) {
    let mut buffer = vec![0; 64 << 10];
    while let Ok(n @ 1..) = stream.read(&mut buffer) {
        write(log, &buffer[..n]);
    }
}

/// A failure to write shows when the log is finished.
pub(crate) fn write(log: &SharedLog, bytes: &[u8]) {
    let _ = log.lock().unwrap_or_else(PoisonError::into_inner).write_all(bytes);
}
