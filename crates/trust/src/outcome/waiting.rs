//! The landing of a result whose outcome is pending, for its removal from the target.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use herma_core::report::{LandedIn, OutcomeState};
use herma_core::{Report, RunId};
use herma_git::Landing;
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

use herma_files::{MAX_RECORD_BYTES, open_directory, read_regular};
use herma_home::{Home, write_durably};

/// A landing that can be removed again. It holds the target's path and never leaves the home.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PendingLanding {
    run_id: RunId,
    pub(super) landing: Landing,
    pub(super) target_dir: PathBuf,
}

impl PendingLanding {
    /// Checks that it agrees with the report of the same run, or names the difference. Otherwise a process that can write
    /// the home could have the branch of another run deleted, or accepted in place of this one's.
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

/// Locks the run until the file is dropped: of two concurrent outcomes the second sees the first.
pub(super) fn lock_run(home: &Home, run_id: RunId) -> io::Result<File> {
    let dir = open_directory(home.run(run_id).root())?;
    flock(&dir, FlockOperation::LockExclusive)?;
    Ok(dir)
}

/// Keeps the landing of a run until its outcome is given. A run that needs no outcome keeps nothing.
pub fn remember_landing(
    home: &Home,
    report: &Report,
    landing: &Landing,
    target_dir: &Path,
) -> io::Result<()> {
    if report.outcome != OutcomeState::Pending {
        return Ok(());
    }
    let pending =
        PendingLanding { run_id: report.run_id, landing: landing.clone(), target_dir: target_dir.to_owned() };
    let file = file(home, report.run_id);
    fs::create_dir_all(file.parent().unwrap_or(Path::new("/")))?;
    write_durably(&file, &serde_json::to_vec_pretty(&pending)?)
}

pub(super) fn recall(home: &Home, run_id: RunId) -> io::Result<PendingLanding> {
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
