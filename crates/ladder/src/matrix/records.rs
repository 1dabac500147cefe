//! The kept records of the failure matrix, signed with the installation's key.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::PathBuf;

use herma_core::matrix::MatrixReport;
use herma_core::signed::Signed;
use herma_core::{Digest, RunId, VERSION};
use herma_evidence::signed;
use herma_files::{MAX_RECORD_BYTES, read_regular};
use herma_harness::Installation;
use herma_home::write_durably;

/// A record of the matrix does not count.
#[derive(Debug, thiserror::Error)]
pub enum MatrixRecordError {
    /// There is none of this name.
    #[error("there is no record `{0}` of the failure matrix")]
    NotThere(RunId),
    /// It does not verify any more.
    #[error("the record {0} of the failure matrix does not count: {1}")]
    Broken(RunId, String),
    /// The records could not be read or written.
    #[error("the records of the failure matrix: {0}")]
    Io(#[from] io::Error),
}

/// The records of one installation.
pub struct MatrixRecords<'a> {
    installation: &'a Installation,
}

impl<'a> MatrixRecords<'a> {
    /// The records of this installation.
    #[must_use]
    pub fn of(installation: &'a Installation) -> Self {
        Self { installation }
    }

    /// The file of a record.
    #[must_use]
    pub fn file(&self, id: RunId) -> PathBuf {
        self.dir().join(format!("{id}.json"))
    }

    /// Signs a record and keeps it.
    pub fn keep(&self, report: MatrixReport) -> Result<Signed<MatrixReport>, MatrixRecordError> {
        DirBuilder::new().recursive(true).mode(0o700).create(self.dir())?;
        let file = self.file(report.id);
        let signed = signed::sign(report, &*self.installation.key).map_err(io::Error::from)?;
        let mut bytes = serde_json::to_vec_pretty(&signed).map_err(io::Error::from)?;
        bytes.push(b'\n');
        write_durably(&file, &bytes)?;
        Ok(signed)
    }

    /// The record of that name, if it was signed here, by the program that reads it now.
    pub fn read(&self, id: RunId, herma_digest: Digest) -> Result<Signed<MatrixReport>, MatrixRecordError> {
        let broken = |why: String| MatrixRecordError::Broken(id, why);
        let bytes = read_regular(&self.file(id), MAX_RECORD_BYTES).map_err(|e| match e.kind() {
            io::ErrorKind::NotFound => MatrixRecordError::NotThere(id),
            _ => broken(format!("it cannot be read: {e}")),
        })?;
        let kept: Signed<MatrixReport> =
            serde_json::from_slice(&bytes).map_err(|e| broken(format!("it cannot be read: {e}")))?;
        signed::check(&kept, &self.installation.key.public())
            .map_err(|e| broken(format!("it was not signed here: {e}")))?;
        let record = &kept.record;
        if record.id != id {
            return Err(broken(format!("it is the record {}", record.id)));
        }
        if record.herma_version != VERSION || record.herma_digest != herma_digest {
            return Err(broken("it is stale: another build of herma made it".to_owned()));
        }
        Ok(kept)
    }

    /// The newest record of all rows, checked; none where there is none.
    pub fn latest(&self, herma_digest: Digest) -> Result<Option<Signed<MatrixReport>>, MatrixRecordError> {
        let entries = match fs::read_dir(self.dir()) {
            Ok(entries) => entries,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(e.into()),
        };
        let mut ids: Vec<RunId> = Vec::new();
        for entry in entries {
            let name = entry?.file_name();
            ids.extend(name.to_str().and_then(|name| name.strip_suffix(".json")?.parse::<RunId>().ok()));
        }
        let Some(newest) = ids.into_iter().max() else { return Ok(None) };
        self.read(newest, herma_digest).map(Some)
    }

    fn dir(&self) -> PathBuf {
        self.installation.home.root().join("matrix")
    }
}
