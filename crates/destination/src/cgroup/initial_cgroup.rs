//! The cgroups that the spawning thread joins while it starts a job, so that the child starts in them.
//!
//! Moving another process waits for an RCU grace period, ten milliseconds and more on an idle machine. A thread
//! that moves itself, which only version 1 allows, waits for nothing.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The groups of version 1 that a job starts in; none by default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct InitialCgroup {
    inside: Vec<PathBuf>,
    outside: Vec<PathBuf>,
}

impl InitialCgroup {
    pub(super) fn add(&mut self, inside: &Path, outside: &Path) {
        self.inside.push(inside.to_owned());
        self.outside.push(outside.to_owned());
    }

    /// Moves only the calling thread into the groups.
    pub(crate) fn enter(&self) -> io::Result<()> {
        stand_in(&self.inside)
    }

    /// Moves the calling thread back to herma's own groups.
    pub(crate) fn leave(&self) -> io::Result<()> {
        stand_in(&self.outside)
    }
}

fn stand_in(dirs: &[PathBuf]) -> io::Result<()> {
    dirs.iter().try_for_each(|dir| {
        let file = dir.join("tasks");
        // 0 means the writing thread.
        fs::write(&file, "0")
            .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", file.display())))
    })
}
