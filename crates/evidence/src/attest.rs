//! Signs a finished bundle.

use std::collections::BTreeSet;
use std::{fs, io};

use herma_core::Report;

use crate::bundle::{Bundle, WriteError};
use crate::envelope::{Envelope, Predicate, Statement};
use crate::keys::InstallationKey;
use crate::layout;

/// The bundle could not be attested.
#[derive(Debug, thiserror::Error)]
pub enum AttestError {
    /// The attestation could not be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// The files of the bundle differ from the recorded ones, so no statement over them would be true.
    #[error("the bundle cannot be attested: {0}")]
    Unrecorded(String),
    /// The directory could not be listed.
    #[error("the bundle cannot be attested: its directory could not be read: {0}")]
    List(#[source] io::Error),
    /// The statement could not be serialised.
    #[error("the bundle cannot be attested: {0}")]
    Serialise(#[from] serde_json::Error),
}

/// A signed attestation that is not in its bundle yet.
#[derive(Clone, Debug)]
pub struct Attestation {
    bytes: Vec<u8>,
}

impl Attestation {
    /// The file as it will be written.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Writes it into the bundle. Nothing may be written after it.
    pub fn publish(&self, bundle: &Bundle) -> Result<(), AttestError> {
        // The attestation says that everything is there, so everything must be before it is.
        bundle.sync_names().map_err(AttestError::List)?;
        bundle.write(layout::ATTESTATION, &self.bytes)?;
        bundle.sync_name(layout::ATTESTATION).map_err(AttestError::List)
    }
}

/// Writes the attestation over every other file of the bundle. Nothing may be written after it.
pub fn attest(bundle: &Bundle, key: &InstallationKey, report: &Report) -> Result<(), AttestError> {
    sign(bundle, key, report)?.publish(bundle)
}

/// Signs the attestation over every file of the bundle, and writes nothing.
pub fn sign(bundle: &Bundle, key: &InstallationKey, report: &Report) -> Result<Attestation, AttestError> {
    let subjects = bundle.subjects();
    if !subjects.contains_key(layout::REPORT) {
        return Err(AttestError::Unrecorded(format!("{} was not written", layout::REPORT)));
    }
    let on_disk = list(bundle).map_err(AttestError::List)?;
    let recorded: BTreeSet<String> = subjects.keys().cloned().collect();
    if let Some(odd) = on_disk.symmetric_difference(&recorded).next() {
        let side =
            if on_disk.contains(odd) { "is there and was not recorded" } else { "was recorded and is gone" };
        return Err(AttestError::Unrecorded(format!("{odd} {side}")));
    }
    let predicate = Predicate {
        run_id: report.run_id,
        contract_digest: report.contract_digest,
        status: report.status,
        herma_version: report.herma_version.clone(),
        trust_head: report.trust_head,
    };
    let envelope =
        Envelope::seal(&Statement::new(subjects, predicate), |bytes| (key.key_id(), key.sign(bytes)))?;
    Ok(Attestation { bytes: envelope.to_bytes()? })
}

/// Every file of the bundle; an empty directory of logs is taken away, since no file vouches for it.
fn list(bundle: &Bundle) -> io::Result<BTreeSet<String>> {
    let mut names = BTreeSet::new();
    for entry in fs::read_dir(bundle.dir())? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if name != layout::ENGINE_DIR {
            names.insert(name);
            continue;
        }
        let mut logs = fs::read_dir(entry.path())?.peekable();
        if logs.peek().is_none() {
            fs::remove_dir(entry.path())?;
        }
        for log in logs {
            names.insert(format!("{name}/{}", log?.file_name().to_string_lossy()));
        }
    }
    Ok(names)
}
