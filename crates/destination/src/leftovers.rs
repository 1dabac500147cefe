//! What a run left alive when herma itself was killed.

use std::io;

use herma_model::RunId;

use crate::proc;

/// Kills every process of this user that carries the run's name, until none is left; says how many they were.
pub fn kill(run: RunId) -> io::Result<usize> {
    proc::kill_until_none(|| Ok(proc::of_run(run, &proc::alive()?)))
}

/// How many processes of this user carry the run's name now.
pub fn count(run: RunId) -> io::Result<usize> {
    Ok(proc::of_run(run, &proc::alive()?).len())
}
