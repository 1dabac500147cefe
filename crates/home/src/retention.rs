//! Records of what a person or `herma gc` removed of a run, beside its directories: `discarded.json` and `removed.json`.

use std::fs;
use std::io;
use std::path::PathBuf;

use herma_core::{Digest, RunId, Timestamp};
use herma_files::read_regular;
use serde::{Deserialize, Serialize};

use crate::durable::{sync_dir, write_durably};
use crate::home::Home;
use crate::removal::remove_any;
use crate::run_dirs::RunDirs;

/// The largest record that is read.
const MAX_BYTES: u64 = 64 << 10;

/// The removal of workspace and session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Discarded {
    schema: String,
    run_id: RunId,
    at: Timestamp,
    removed: Vec<String>,
}

/// The removal of a bundle.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RemovedBundle {
    /// `herma.removed-bundle/v1`.
    pub schema: String,
    /// The run.
    pub run_id: RunId,
    /// The digest of its `attestation.json`, with which a copy can be compared.
    pub attestation: Digest,
    /// When it was removed.
    pub removed_at: Timestamp,
}

impl RunDirs {
    /// The directories that are kept for a later run, by their names.
    #[must_use]
    pub fn kept(&self) -> Vec<(&'static str, PathBuf)> {
        let all =
            [("workspace", self.workspace()), ("disposable", self.disposable()), ("session", self.session())];
        all.into_iter().filter(|(_, dir)| fs::symlink_metadata(dir).is_ok()).collect()
    }

    fn discarded(&self) -> PathBuf {
        self.root().join("discarded.json")
    }

    /// A bundle that is being removed.
    fn removing(&self) -> PathBuf {
        self.root().join("removing")
    }

    fn removed(&self) -> PathBuf {
        self.root().join("removed.json")
    }
}

impl Home {
    /// Deletes workspace and session of a run and records that; gives the names of the removed directories. The record comes first, so
    /// that a run is never resumed from half of them.
    pub fn discard(&self, run: RunId, at: Timestamp) -> io::Result<Vec<&'static str>> {
        let dirs = self.run(run);
        let kept = dirs.kept();
        if kept.is_empty() {
            return Ok(Vec::new());
        }
        let removed: Vec<&'static str> = kept.iter().map(|(name, _)| *name).collect();
        let record = Discarded {
            schema: "herma.discarded/v1".to_owned(),
            run_id: run,
            at,
            removed: removed.iter().map(|name| (*name).to_owned()).collect(),
        };
        write_durably(&dirs.discarded(), &serde_json::to_vec(&record)?)?;
        for (_, dir) in kept {
            remove_any(&dir)?;
        }
        Ok(removed)
    }

    /// When workspace and session of the run were discarded; none if they were not.
    #[must_use]
    pub fn discarded_at(&self, run: RunId) -> Option<Timestamp> {
        let bytes = read_regular(&self.run(run).discarded(), MAX_BYTES).ok()?;
        Some(serde_json::from_slice::<Discarded>(&bytes).ok()?.at)
    }

    /// Removes the bundle of a run. The record comes first, so that a bundle is never missing without one.
    pub fn remove_bundle(&self, run: RunId, attestation: Digest, at: Timestamp) -> io::Result<()> {
        let dirs = self.run(run);
        let schema = "herma.removed-bundle/v1".to_owned();
        let record = RemovedBundle { schema, run_id: run, attestation, removed_at: at };
        write_durably(&dirs.removed(), &serde_json::to_vec(&record)?)?;
        // Out of its place first: a removal that is cut off leaves no part of a bundle that looks damaged.
        let aside = dirs.removing();
        remove_any(&aside)?;
        fs::rename(dirs.bundle(), &aside)?;
        sync_dir(dirs.root())?;
        remove_any(&aside)
    }

    /// The record of a bundle that was removed; none where the bundle is there, or is missing without a record.
    #[must_use]
    pub fn removed_bundle(&self, run: RunId) -> Option<RemovedBundle> {
        let dirs = self.run(run);
        if fs::symlink_metadata(dirs.bundle()).is_ok() {
            return None;
        }
        let bytes = read_regular(&dirs.removed(), MAX_BYTES).ok()?;
        serde_json::from_slice::<RemovedBundle>(&bytes).ok().filter(|record| record.run_id == run)
    }
}
