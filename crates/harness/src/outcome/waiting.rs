//! What herma remembers of a result that waits for its operator.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use herma_core::report::{LandedIn, OutcomeState};
use herma_core::{Report, RunId};
use herma_git::Landing;
use herma_home::{Home, write_durably};
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

use crate::facts::Facts;
use crate::file_reading::{MAX_RECORD_BYTES, open_directory, read_regular};

/// What is needed to take back what a run landed. It holds the target's path and never leaves the home.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Waiting {
    run_id: RunId,
    pub(super) landing: Landing,
    pub(super) target_dir: PathBuf,
}

impl Waiting {
    /// Whether it is about what this report says of this very run, or what differs. Who can write in the home could
    /// else have the branch of another run deleted, or accepted in the place of this one's.
    pub(super) fn is_of(&self, report: &Report) -> Result<(), &'static str> {
        let landing = &self.landing;
        let told = report.landing.as_ref().filter(|told| told.landed && told.repository == LandedIn::Target);
        let told = told.ok_or("that something landed")?;
        let same = [
            (self.run_id == report.run_id, "the run"),
            (landing.reference == told.reference, "the branch"),
            (landing.reference.ends_with(&format!("/{}", report.run_id)), "the branch's name"),
            (landing.commit == told.commit, "the commit"),
            (landing.base == told.base, "the base"),
            (report.result_tree.as_ref() == Some(&landing.tree), "the tree"),
        ];
        same.iter().find(|(same, _)| !same).map_or(Ok(()), |(_, what)| Err(what))
    }
}

/// Holds the run until the file is dropped: of two who speak at once, one is heard, and the other finds its word.
pub(super) fn hold(home: &Home, run_id: RunId) -> io::Result<File> {
    let dir = open_directory(home.run(run_id).root())?;
    flock(&dir, FlockOperation::LockExclusive)?;
    Ok(dir)
}

/// Remembers how to take back what a run landed, until its operator has spoken.
pub(crate) fn remember(home: &Home, report: &Report, facts: &Facts) -> io::Result<()> {
    let (Some(landing), Some(target_dir)) = (&facts.landing, &facts.target_dir) else { return Ok(()) };
    if report.outcome != OutcomeState::Pending {
        return Ok(());
    }
    let waiting = Waiting { run_id: report.run_id, landing: landing.clone(), target_dir: target_dir.clone() };
    let file = file(home, report.run_id);
    fs::create_dir_all(file.parent().unwrap_or(Path::new("/")))?;
    write_durably(&file, &serde_json::to_vec_pretty(&waiting)?)
}

pub(super) fn recall(home: &Home, run_id: RunId) -> io::Result<Waiting> {
    Ok(serde_json::from_slice(&read_regular(&file(home, run_id), MAX_RECORD_BYTES)?)?)
}

pub(super) fn forget(home: &Home, run_id: RunId) -> io::Result<()> {
    match fs::remove_file(file(home, run_id)) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(e),
        _ => Ok(()),
    }
}

fn file(home: &Home, run_id: RunId) -> PathBuf {
    home.root().join("landed").join(format!("{run_id}.json"))
}
