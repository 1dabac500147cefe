//! The traits of a destination and of a process that it started.

use std::fmt;
use std::io::{self, Read, Write};
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use herma_core::RunId;
use herma_core::engine::DestinationKind;

use crate::capabilities::DestinationCapabilities;
use crate::job::{BadJob, Job, JobPaths, View};
use crate::landlock_canary::LandlockCanary;
use crate::limits::{Held, LimitName, Limits};
use crate::overlay::Overlay;

/// A place where processes run. A destination that is not ready refuses: none ever falls back to a weaker one.
pub trait Destination: Send + Sync {
    /// Which destination this is.
    fn kind(&self) -> DestinationKind;

    /// The properties that callers decide by.
    fn capabilities(&self) -> DestinationCapabilities {
        DestinationCapabilities::of(self.kind())
    }

    /// Checks that everything needed to start processes is installed; returns the isolation layers that will apply.
    fn readiness(&self) -> Result<Readiness, Unready>;

    /// Checks the same by starting a process. A run does not need it, because its probes run before its engine.
    fn rehearse(&self) -> Result<Readiness, Unready> {
        self.readiness()
    }

    /// The limits that will be enforced for a job, each with its enforcer.
    fn limits(&self, limits: &Limits) -> Vec<Held> {
        let _ = limits;
        Vec::new()
    }

    /// The paths of the job and of herma's binary as seen from inside.
    fn view(&self, paths: &JobPaths) -> View;

    /// Changes the owner of a probe canary to the user inside, so that the probe tests isolation and not file
    /// ownership.
    fn chown_canary(&self, planted: &Path) -> io::Result<()> {
        let _ = planted;
        Ok(())
    }

    /// The path that only Landlock keeps from being written inside; a probe tries to write it.
    fn landlock_canary(&self) -> LandlockCanary {
        LandlockCanary::File
    }

    /// Begins slow setup that only needs the directories of the job to exist; `None` if there is none. Used through
    /// [`Prepared`].
    fn prepare(&self, job: &Job) -> Result<Option<Box<dyn Waiting>>, StartError> {
        let _ = job;
        Ok(None)
    }

    /// Starts the job. Its processes die when herma dies, also by SIGKILL, whichever thread called this.
    fn start(&self, job: &Job) -> Result<Box<dyn Process>, StartError>;

    /// Whether a job can have overlays of `lower`, a directory with a file in it, with changes below `scratch`, an empty directory.
    /// A destination that can tries one in a job.
    fn can_overlay(&self, run: RunId, lower: &Path, scratch: &Path) -> io::Result<bool> {
        let _ = (run, lower, scratch);
        Ok(false)
    }

    /// Ends and removes all processes of a run whose herma is dead; returns how many processes or containers there
    /// were. A run without any is no error.
    fn reap(&self, run: RunId) -> Result<usize, ReapError>;
}

/// A job that is set up and not started. Dropping it undoes the setup.
pub trait Waiting: Send {
    /// Starts the job, as [`Destination::start`] does.
    fn start(self: Box<Self>) -> Result<Box<dyn Process>, StartError>;
}

/// A job with all setup done that does not need the content of its directories.
pub struct Prepared<'a> {
    destination: &'a dyn Destination,
    job: Job,
    waiting: Option<Box<dyn Waiting>>,
}

impl<'a> Prepared<'a> {
    /// Begins the setup and returns while it continues.
    pub fn begin(destination: &'a dyn Destination, job: Job) -> Result<Self, StartError> {
        let waiting = destination.prepare(&job)?;
        Ok(Self { destination, job, waiting })
    }

    /// A job of which nothing is set up ahead.
    #[must_use]
    pub fn later(destination: &'a dyn Destination, job: Job) -> Self {
        Self { destination, job, waiting: None }
    }

    /// The same with overlays, which undo what was set up without them.
    #[must_use]
    pub fn with_overlays(self, overlays: Vec<Overlay>) -> Self {
        if overlays.is_empty() {
            return self;
        }
        Self { job: self.job.with_overlays(overlays), waiting: None, ..self }
    }

    /// Starts the job.
    pub fn start(self) -> Result<Box<dyn Process>, StartError> {
        match self.waiting {
            Some(waiting) => waiting.start(),
            None => self.destination.start(&self.job),
        }
    }
}

/// A started process and its descendants. Dropping it kills all of them.
pub trait Process: Send {
    /// The write end of stdin, once, where the job asked for [`crate::Stdin::Pipe`]. Dropping it closes stdin. A
    /// write blocks while the process does not read.
    fn take_stdin(&mut self) -> Option<Box<dyn Write + Send>>;

    /// The read end of stdout, once.
    fn take_stdout(&mut self) -> Option<Box<dyn Read + Send>>;

    /// The read end of stderr, once.
    fn take_stderr(&mut self) -> Option<Box<dyn Read + Send>>;

    /// Blocks until the process exits, at most for `at_most`; `None` means that it still runs.
    ///
    /// Only the process itself is waited for: its descendants may live until [`Process::kill_all`].
    fn wait(&mut self, at_most: Duration) -> io::Result<Option<Exit>>;

    /// The limit whose excess made herma or the kernel kill a process of the job. The exit tells whether the job
    /// failed because of it.
    fn exceeded_limit(&self) -> Option<LimitName> {
        None
    }

    /// Sends SIGTERM to every process inside and returns at once.
    fn terminate(&mut self);

    /// Kills every process of the job and returns when none is alive. Further calls do nothing.
    fn kill_all(&mut self) -> io::Result<Exit>;
}

/// The interval at which a wait polls for cancellation.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Waits as [`Process::wait`] does, and returns early when `is_over` returns true.
pub fn wait_unless(
    process: &mut dyn Process,
    at_most: Duration,
    is_over: impl Fn() -> bool,
) -> io::Result<Option<Exit>> {
    let began = Instant::now();
    loop {
        let left = at_most.saturating_sub(began.elapsed());
        let ended = process.wait(left.min(POLL_INTERVAL));
        if !matches!(ended, Ok(None)) || left.is_zero() || is_over() {
            return ended;
        }
    }
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exit {
    /// The exit code, if the process exited. In the sandbox a signal shows as 128 plus its number.
    pub code: Option<i32>,
    /// The signal that killed it, if one did.
    pub signal: Option<i32>,
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self { signal: Some(signal), .. } => write!(f, "by signal {signal}"),
            Self { code: Some(code), .. } => write!(f, "with exit code {code}"),
            Self { code: None, signal: None } => f.write_str("in an unknown way"),
        }
    }
}

/// The isolation that a ready destination provides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Readiness {
    /// The isolation layers between the process and the machine; none on the host.
    pub walls: Vec<String>,
    /// The program that provides them, with its version.
    pub detail: String,
}

/// Why processes cannot be started here, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what}: {next_step}")]
pub struct Unready {
    /// The missing requirement.
    pub what: String,
    /// The step to take.
    pub next_step: String,
}

/// A dead run could not be reaped.
#[derive(Debug, thiserror::Error)]
pub enum ReapError {
    /// The service that runs the processes of this destination does not answer.
    #[error("it cannot be asked about the processes of a dead run: {0}")]
    Unreachable(#[source] io::Error),
    /// Local processes could not be ended, or their cgroups could not be removed.
    #[error("the processes of a dead run cannot be ended: {0}")]
    Io(#[from] io::Error),
}

/// The process did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The destination is not ready.
    #[error(transparent)]
    Unready(#[from] Unready),
    /// The job cannot be started as it was written.
    #[error(transparent)]
    BadJob(#[from] BadJob),
    /// A system call failed.
    #[error("{what}: {source}")]
    Io {
        /// The operation.
        what: String,
        /// The error of the system.
        source: io::Error,
    },
    /// The program that sets up the isolation failed before the command could start.
    #[error("{program} could not set up the isolation: {said}")]
    Isolation {
        /// The program.
        program: String,
        /// Its stderr.
        said: String,
    },
    /// The program that sets up the isolation timed out in every attempt.
    #[error(
        "{program} did not start within {} s ({attempts} attempts; is the machine under load?)",
        within.as_secs_f32()
    )]
    Slow {
        /// The program.
        program: String,
        /// The time of all attempts together.
        within: Duration,
        /// The number of attempts.
        attempts: u32,
    },
}

impl Exit {
    /// Whether it exited with code 0.
    #[must_use]
    pub fn success(&self) -> bool {
        self.code == Some(0)
    }

    /// Whether it was killed, in either of the two encodings.
    pub(crate) fn was_killed(&self) -> bool {
        let kill = rustix::process::Signal::KILL.as_raw();
        self.signal == Some(kill) || self.code == Some(128 + kill)
    }
}

impl From<ExitStatus> for Exit {
    fn from(status: ExitStatus) -> Self {
        Self { code: status.code(), signal: status.signal() }
    }
}

impl StartError {
    pub(crate) fn io(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        move |source| Self::Io { what, source }
    }
}
