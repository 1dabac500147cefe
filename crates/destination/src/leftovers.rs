//! Processes and cgroups that a run left when herma itself was killed.

use std::io;

use herma_core::RunId;

use crate::{cgroup, proc};

/// Kills every process of this user that carries the run's id until none is left, and removes the run's cgroups;
/// returns the number of processes.
pub fn kill(run: RunId) -> io::Result<usize> {
    let killed = proc::kill_until_none(|| Ok(proc::of_run(run, &proc::alive()?)))?;
    cgroup::remove_of_run(run)?;
    Ok(killed)
}

/// The number of this user's processes that carry the run's id.
pub fn count(run: RunId) -> io::Result<usize> {
    Ok(proc::of_run(run, &proc::alive()?).len())
}
