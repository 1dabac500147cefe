//! What every destination can do, and what a started process can be told.

use std::fmt;
use std::io::{self, Read, Write};
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use herma_core::RunId;
use herma_core::engine::DestinationKind;

use crate::capabilities::Capabilities;
use crate::job::{BadJob, Job, JobPaths, View};
use crate::limits::{Held, LimitName, Limits};
use crate::probe::LandlockCanary;

/// Where processes live. A destination that is not ready refuses: none ever falls back to a weaker one.
pub trait Destination: Send + Sync {
    /// Which destination this is.
    fn kind(&self) -> DestinationKind;

    /// The properties that callers decide by.
    fn capabilities(&self) -> Capabilities {
        Capabilities::of(self.kind())
    }

    /// Whether what is needed to start processes here is installed, and which walls will stand around them.
    fn readiness(&self) -> Result<Readiness, Unready>;

    /// The same, tried out by starting something. A run needs no rehearsal: its probes come before its engine.
    fn rehearse(&self) -> Result<Readiness, Unready> {
        self.readiness()
    }

    /// What of these limits will be held for a job, and by what.
    fn limits(&self, limits: &Limits) -> Vec<Held> {
        let _ = limits;
        Vec::new()
    }

    /// Where the rooms and herma itself are, as seen from inside.
    fn view(&self, paths: &JobPaths) -> View;

    /// Gives what was planted on the host to who will be inside, where that is another user: it must be the walls that keep
    /// it from there, and not its owner.
    fn lend(&self, planted: &Path) -> io::Result<()> {
        let _ = planted;
        Ok(())
    }

    /// What only Landlock keeps from being written inside; a probe tries it.
    fn landlock_canary(&self) -> LandlockCanary {
        LandlockCanary::File
    }

    /// Begins what takes a while and needs only that the rooms are there; `None` where there is no such thing. Used
    /// through [`Prepared`].
    fn prepare(&self, job: &Job) -> Result<Option<Box<dyn Waiting>>, StartError> {
        let _ = job;
        Ok(None)
    }

    /// Starts the job. What it starts dies when herma dies, also by SIGKILL, whichever thread called this.
    fn start(&self, job: &Job) -> Result<Box<dyn Process>, StartError>;

    /// Ends and removes everything that a run left here whose herma is dead; returns how many processes or containers
    /// there were. Reaping a run that left nothing is no error.
    fn reap(&self, run: RunId) -> Result<usize, ReapError>;
}

/// A job that waits for its start: nothing of it runs. Dropping it takes everything back.
pub trait Waiting: Send {
    /// Starts it, as [`Destination::start`] does.
    fn start(self: Box<Self>) -> Result<Box<dyn Process>, StartError>;
}

/// A job for which everything was done that can be done before its rooms are filled.
pub struct Prepared<'a> {
    destination: &'a dyn Destination,
    job: Job,
    waiting: Option<Box<dyn Waiting>>,
}

impl<'a> Prepared<'a> {
    /// Begins to make ready for the job, and returns while that goes on.
    pub fn begin(destination: &'a dyn Destination, job: Job) -> Result<Self, StartError> {
        let waiting = destination.prepare(&job)?;
        Ok(Self { destination, job, waiting })
    }

    /// Starts the job.
    pub fn start(self) -> Result<Box<dyn Process>, StartError> {
        match self.waiting {
            Some(waiting) => waiting.start(),
            None => self.destination.start(&self.job),
        }
    }
}

/// A process that was started, with everything that it started in turn. Dropping it kills all of them.
pub trait Process: Send {
    /// The writing end of its standard input, once, where the job asked for [`crate::Stdin::Pipe`]. Dropping it ends the
    /// input. A write waits as long as the process does not read.
    fn take_stdin(&mut self) -> Option<Box<dyn Write + Send>>;

    /// The reading end of its standard output, once.
    fn take_stdout(&mut self) -> Option<Box<dyn Read + Send>>;

    /// The reading end of its standard error, once.
    fn take_stderr(&mut self) -> Option<Box<dyn Read + Send>>;

    /// Sleeps until it ends, but no longer than `at_most`; `None` says that it still runs.
    ///
    /// Only the process that was started is waited for: what it left behind may live until [`Process::kill_all`].
    fn wait(&mut self, at_most: Duration) -> io::Result<Option<Exit>>;

    /// The limit that it met and that ended it, or something of it: by herma's own hand or by the kernel's. Whether that
    /// made it fail is for its exit to say.
    fn over_limit(&self) -> Option<LimitName> {
        None
    }

    /// Sends TERM to everything inside and returns at once.
    fn terminate(&mut self);

    /// Kills everything of it and returns only when nothing of it is alive. A second call does nothing more.
    fn kill_all(&mut self) -> io::Result<Exit>;
}

/// How long a wait lasts at most before it is looked whether it is over.
const LOOK: Duration = Duration::from_millis(100);

/// Waits as [`Process::wait`] does, and not much longer than until `is_over` says so.
pub fn wait_unless(
    process: &mut dyn Process,
    at_most: Duration,
    is_over: impl Fn() -> bool,
) -> io::Result<Option<Exit>> {
    let began = Instant::now();
    loop {
        let left = at_most.saturating_sub(began.elapsed());
        let ended = process.wait(left.min(LOOK));
        if !matches!(ended, Ok(None)) || left.is_zero() || is_over() {
            return ended;
        }
    }
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exit {
    /// Its exit code, where it exited by itself. In the sandbox a signal shows as 128 plus its number.
    pub code: Option<i32>,
    /// The signal that ended it, where one did.
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

/// What a ready destination offers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Readiness {
    /// The walls that stand between the process and the machine; none on the host.
    pub walls: Vec<String>,
    /// What makes them, with its version.
    pub detail: String,
}

/// Why processes cannot be started here, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what}: {next_step}")]
pub struct Unready {
    /// What is missing.
    pub what: String,
    /// What a person can do about it.
    pub next_step: String,
}

/// A dead run could not be reaped.
#[derive(Debug, thiserror::Error)]
pub enum ReapError {
    /// The service that holds the processes of this destination does not answer.
    #[error("it cannot be asked about the processes of a dead run: {0}")]
    Unreachable(#[source] io::Error),
    /// Processes of this machine could not be ended, or their cgroups not removed.
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
    /// The system refused.
    #[error("{what}: {source}")]
    Io {
        /// What was being done.
        what: String,
        /// What the system said.
        source: io::Error,
    },
    /// The program that makes the walls gave up before the command could start.
    #[error("{program} could not make the walls: {said}")]
    Walls {
        /// The program.
        program: String,
        /// Its last words.
        said: String,
    },
    /// The program that makes the walls did not get that far, in any attempt.
    #[error(
        "{program} did not start within {} s ({attempts} attempts; is the machine under load?)",
        within.as_secs_f32()
    )]
    Slow {
        /// The program.
        program: String,
        /// How long all attempts took together.
        within: Duration,
        /// How many there were.
        attempts: u32,
    },
}

impl Exit {
    /// Whether it ended by itself with exit code 0.
    #[must_use]
    pub fn success(&self) -> bool {
        self.code == Some(0)
    }

    /// Whether it was killed, by whichever of the two ways that shows.
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
