//! Where the thread that starts a job stands while it does: what is born in a group need not be moved there.
//!
//! To move another process the kernel waits until every processor has had a quiet moment, which on an idle machine takes
//! ten milliseconds and more. A thread that moves itself, which only version 1 allows, waits for nothing.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The groups of version 1 that a job is born in; nowhere in particular by default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Birthplace {
    inside: Vec<PathBuf>,
    outside: Vec<PathBuf>,
}

impl Birthplace {
    pub(super) fn add(&mut self, inside: &Path, outside: &Path) {
        self.inside.push(inside.to_owned());
        self.outside.push(outside.to_owned());
    }

    /// Moves the calling thread, and no other, into the groups.
    pub(crate) fn enter(&self) -> io::Result<()> {
        stand_in(&self.inside)
    }

    /// Moves the calling thread back to where herma is.
    pub(crate) fn leave(&self) -> io::Result<()> {
        stand_in(&self.outside)
    }
}

fn stand_in(dirs: &[PathBuf]) -> io::Result<()> {
    dirs.iter().try_for_each(|dir| {
        let file = dir.join("tasks");
        // 0 is the thread that writes it.
        fs::write(&file, "0")
            .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", file.display())))
    })
}
