//! What a run left when herma itself was killed: processes, and the groups that held their limits.

use std::io;

use herma_core::RunId;

use crate::{cgroup, proc};

/// Kills every process of this user that carries the run's name, until none is left, and removes the run's groups;
/// says how many processes they were.
pub fn kill(run: RunId) -> io::Result<usize> {
    let killed = proc::kill_until_none(|| Ok(proc::of_run(run, &proc::alive()?)))?;
    cgroup::remove_of_run(run)?;
    Ok(killed)
}

/// How many processes of this user carry the run's name now.
pub fn count(run: RunId) -> io::Result<usize> {
    Ok(proc::of_run(run, &proc::alive()?).len())
}
