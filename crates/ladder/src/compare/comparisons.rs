//! The comparisons of this installation, and whether each is still valid.

use std::collections::HashSet;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::PathBuf;

use herma_core::comparison::{Comparison, ComparisonId, Lane, LaneRun};
use herma_core::engine::EngineName;
use herma_core::signed::Signed;
use herma_core::{Digest, RunId, VERSION};
use herma_evidence::{layout, signed};
use herma_files::{MAX_RECORD_BYTES, read_regular};
use herma_harness::Installation;
use herma_home::write_durably;

use super::error::ComparisonError;
use super::markdown::comparison_markdown;

/// The comparisons of one installation.
pub struct Comparisons<'a> {
    installation: &'a Installation,
}

impl<'a> Comparisons<'a> {
    /// The comparisons of this installation.
    #[must_use]
    pub fn of(installation: &'a Installation) -> Self {
        Self { installation }
    }

    /// The files of a comparison: signed JSON, and Markdown for people.
    #[must_use]
    pub fn files(&self, id: ComparisonId) -> [PathBuf; 2] {
        ["json", "md"].map(|kind| self.dir().join(format!("{id}.{kind}")))
    }

    /// Signs a comparison and keeps it.
    pub fn keep(&self, comparison: Comparison) -> Result<Signed<Comparison>, ComparisonError> {
        DirBuilder::new().recursive(true).mode(0o700).create(self.dir())?;
        let [for_programs, for_people] = self.files(comparison.id);
        let signed = signed::sign(comparison, &*self.installation.key).map_err(io::Error::from)?;
        let mut bytes = serde_json::to_vec_pretty(&signed).map_err(io::Error::from)?;
        bytes.push(b'\n');
        write_durably(&for_people, comparison_markdown(&signed.record).as_bytes())?;
        write_durably(&for_programs, &bytes)?;
        Ok(signed)
    }

    /// The comparison of that name, if everything behind it still holds: its signature, the version of herma, the
    /// engines, and every bundle.
    pub fn read(&self, id: ComparisonId) -> Result<Signed<Comparison>, ComparisonError> {
        let comparison = self.signed(id)?;
        self.check(&comparison.record).map_err(|why| ComparisonError::Broken(id, why))?;
        Ok(comparison)
    }

    /// The newest comparison with a lane of that engine, checked; none where there is none. One that was made before a
    /// broken one does not replace it.
    pub fn latest_for(&self, engine: &EngineName) -> Result<Option<Signed<Comparison>>, ComparisonError> {
        for id in self.newest_first()? {
            if self.signed(id)?.record.lanes.iter().any(|lane| lane.engine == *engine) {
                return self.read(id).map(Some);
            }
        }
        Ok(None)
    }

    /// The runs that any comparison made. A comparison that cannot be read names none.
    #[must_use]
    pub fn compared_runs(&self) -> HashSet<RunId> {
        let ids = self.newest_first().unwrap_or_default();
        let comparisons = ids.into_iter().filter_map(|id| self.signed(id).ok());
        comparisons
            .flat_map(|kept| kept.record.lanes.into_iter().flat_map(|lane| lane.runs))
            .map(|run| run.run_id)
            .collect()
    }

    /// The newest comparison, checked; none where there is none. One that was made before a broken one does not replace it.
    pub fn latest(&self) -> Result<Option<Signed<Comparison>>, ComparisonError> {
        self.newest_first()?.first().map(|id| self.read(*id)).transpose()
    }

    fn dir(&self) -> PathBuf {
        self.installation.home.root().join("comparisons")
    }

    fn newest_first(&self) -> io::Result<Vec<ComparisonId>> {
        let entries = match fs::read_dir(self.dir()) {
            Ok(entries) => entries,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(e) => return Err(e),
        };
        let mut ids: Vec<ComparisonId> = Vec::new();
        for entry in entries {
            let name = entry?.file_name();
            ids.extend(
                name.to_str().and_then(|name| name.strip_suffix(".json")?.parse::<ComparisonId>().ok()),
            );
        }
        // Names begin with the time at which they were made.
        ids.sort_unstable();
        ids.reverse();
        Ok(ids)
    }

    /// The comparison as it was signed here.
    fn signed(&self, id: ComparisonId) -> Result<Signed<Comparison>, ComparisonError> {
        let broken = |why: String| ComparisonError::Broken(id, why);
        let [file, _] = self.files(id);
        let bytes = read_regular(&file, MAX_RECORD_BYTES).map_err(|e| match e.kind() {
            io::ErrorKind::NotFound => ComparisonError::NotThere(id),
            _ => broken(format!("it cannot be read: {e}")),
        })?;
        let comparison: Signed<Comparison> =
            serde_json::from_slice(&bytes).map_err(|e| broken(format!("it cannot be read: {e}")))?;
        signed::check(&comparison, &self.installation.key.public())
            .map_err(|e| broken(format!("it was not signed here: {e}")))?;
        if comparison.record.id != id {
            return Err(broken(format!("it is the comparison {}", comparison.record.id)));
        }
        Ok(comparison)
    }

    fn check(&self, comparison: &Comparison) -> Result<(), String> {
        if comparison.herma_version != VERSION {
            return Err(format!("it was made with herma {}, this is {VERSION}", comparison.herma_version));
        }
        for lane in &comparison.lanes {
            self.engine_is_the_same(lane)?;
            for run in &lane.runs {
                self.bundle_holds(run)
                    .map_err(|why| format!("the bundle of run {} broke: {why}", run.run_id))?;
            }
        }
        Ok(())
    }

    fn engine_is_the_same(&self, lane: &Lane) -> Result<(), String> {
        let engine = self.installation.engines().get(&lane.engine);
        let now = engine.and_then(|engine| engine.digest().ok());
        if now == lane.engine_digest {
            return Ok(());
        }
        let shown =
            |digest: Option<Digest>| digest.map_or_else(|| "unknown".to_owned(), |digest| digest.to_string());
        Err(format!("`{}` was {}, it is now {}", lane.engine, shown(lane.engine_digest), shown(now)))
    }

    /// Whether a bundle is still the one that was compared, every byte of it.
    fn bundle_holds(&self, run: &LaneRun) -> Result<(), String> {
        let dir = self.installation.home.run(run.run_id).bundle();
        let attestation = read_regular(&dir.join(layout::ATTESTATION), MAX_RECORD_BYTES)
            .map_err(|e| format!("{} cannot be read: {e}", layout::ATTESTATION))?;
        if Digest::of(&attestation) != run.attestation {
            return Err(format!("{} is not the one that was compared", layout::ATTESTATION));
        }
        match self.installation.evidence().verify(run.run_id).failed().next() {
            Some(failed) => Err(format!("{}: {}", failed.name.as_str(), failed.detail)),
            None => Ok(()),
        }
    }
}
