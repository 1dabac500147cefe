//! Starts a job whose walls are being made, and makes them anew where bubblewrap does not get that far.

use std::io;
use std::time::{Duration, Instant};

use super::Sandbox;
use super::process::{Gates, Rising, SandboxProcess};
use super::watch::Opened;
use crate::destination::{Process, StartError, Waiting};
use crate::doors::Doors;
use crate::job::Job;

/// How the time for a start is shared out: each attempt has twice the time of the one before, and the last all that is
/// left. bubblewrap takes milliseconds to make its namespaces; on a machine under load, or while the kernel takes many
/// namespaces down, it takes seconds, and sometimes another one gets there first.
const FIRST_SHARE: u32 = 6;
/// How long a start that was called off is waited for, to take everything back.
const CALLED_OFF: Duration = Duration::from_secs(20);

/// A job that waits for its start, and what is needed to make its walls once more.
pub(super) struct Starting {
    pub(super) sandbox: Sandbox,
    pub(super) job: Job,
    pub(super) first: WalledIn,
}

impl Waiting for Starting {
    fn start(self: Box<Self>) -> Result<Box<dyn Process>, StartError> {
        self.carry_out()
    }
}

impl Starting {
    /// Starts the job, in as many attempts as its time allows.
    pub(super) fn carry_out(self) -> Result<Box<dyn Process>, StartError> {
        let Self { sandbox, job, first } = self;
        let (began, within) = (Instant::now(), job.limits.start);
        let mut patience = within / FIRST_SHARE;
        let (mut waiting, mut attempts) = (first, 1);
        loop {
            let left = within.saturating_sub(began.elapsed());
            let last = left < patience * 2;
            if let Some(mut process) = waiting.take_hold(if last { left } else { patience })? {
                process.doors = waiting.doors.take();
                let paths = Opened::of(&job.paths).map_err(StartError::io("cannot watch the workspace"))?;
                let gates = waiting.gates.take().ok_or_else(lost)?;
                return Ok(Box::new(process.admit(gates)?.watched(paths, &job.limits)?));
            }
            if last {
                return Err(StartError::Slow { program: "bubblewrap".to_owned(), within, attempts });
            }
            waiting = sandbox.wall_in(&job)?;
            (patience, attempts) = (patience * 2, attempts + 1);
        }
    }
}

/// Walls that stand or are being made. The launcher of the job waits behind them.
pub(super) struct WalledIn {
    /// Until it is started.
    pub(super) walls: Option<Rising>,
    pub(super) gates: Option<Gates>,
    pub(super) doors: Option<Doors>,
}

impl WalledIn {
    /// Waits for the walls; nothing where they do not stand in time, and then they are taken back.
    fn take_hold(&mut self, patience: Duration) -> Result<Option<SandboxProcess>, StartError> {
        SandboxProcess::take_hold(self.walls.take().ok_or_else(lost)?, patience)
    }
}

impl Drop for WalledIn {
    fn drop(&mut self) {
        // By the handle on its first process, which alone reaches all that it has started; and before the gates are closed.
        drop(self.walls.take().map(|walls| SandboxProcess::take_hold(walls, CALLED_OFF)));
    }
}

fn lost() -> StartError {
    StartError::io("cannot start the sandbox")(io::Error::other("it was started before"))
}
