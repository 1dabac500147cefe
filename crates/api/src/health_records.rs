//! The kept records of health checks, signed with the installation's key.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::PathBuf;

use herma_core::health::HealthReport;
use herma_core::signed::Signed;
use herma_core::{RunId, VERSION};
use herma_evidence::signed;
use herma_files::{MAX_RECORD_BYTES, read_regular};
use herma_harness::Installation;
use herma_home::write_durably;

/// The records of one installation.
pub(crate) struct HealthRecords<'a> {
    installation: &'a Installation,
}

impl<'a> HealthRecords<'a> {
    /// The records of this installation.
    pub(crate) fn of(installation: &'a Installation) -> Self {
        Self { installation }
    }

    /// The file of a record.
    pub(crate) fn file(&self, id: RunId) -> PathBuf {
        self.dir().join(format!("{id}.json"))
    }

    /// Signs a record and keeps it.
    pub(crate) fn keep(&self, report: HealthReport) -> io::Result<HealthReport> {
        DirBuilder::new().recursive(true).mode(0o700).create(self.dir())?;
        let file = self.file(report.id);
        let signed = signed::sign(report, &*self.installation.key)?;
        let mut bytes = serde_json::to_vec_pretty(&signed)?;
        bytes.push(b'\n');
        write_durably(&file, &bytes)?;
        Ok(signed.record)
    }

    /// The record of that name, if this installation signed it with this version of herma.
    pub(crate) fn read(&self, id: RunId) -> Result<HealthReport, String> {
        let bytes = read_regular(&self.file(id), MAX_RECORD_BYTES)
            .map_err(|e| format!("the record of the health check cannot be read: {e}"))?;
        let kept: Signed<HealthReport> = serde_json::from_slice(&bytes)
            .map_err(|e| format!("the record of the health check cannot be read: {e}"))?;
        signed::check(&kept, &self.installation.key.public())
            .map_err(|e| format!("the record of the health check was not signed here: {e}"))?;
        let record = kept.record;
        if record.id != id {
            return Err("the record of the health check has another name".to_owned());
        }
        if record.herma_version != VERSION {
            return Err(format!("herma {} made the health check, this is {VERSION}", record.herma_version));
        }
        Ok(record)
    }

    /// The name of the newest record; none where there is none.
    pub(crate) fn newest(&self) -> Option<RunId> {
        let entries = fs::read_dir(self.dir()).into_iter().flatten().flatten();
        let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
        names.filter_map(|name| name.strip_suffix(".json")?.parse().ok()).max()
    }

    fn dir(&self) -> PathBuf {
        self.installation.home.root().join("health")
    }
}
