//! The files of the admissions: `<kind>/<name>.yaml`, `<name>.signed.json`, `<name>.revoked.json`.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use herma_core::admission::{AdmissionId, AdmissionKind, AdmissionRevocation, MAX_BYTES, SignedAdmission};
use herma_core::signed::Signed;
use herma_files::read_start;
use herma_home::{sync_dir, write_durably};
use rustix::fs::{FlockOperation, flock};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{AdmissionError, ListedAdmission};

const RECORD: &str = ".yaml";
const SIGNATURE: &str = ".signed.json";
const REVOCATION: &str = ".revoked.json";

/// The directory of the admissions.
#[derive(Clone, Debug)]
pub(super) struct Files {
    dir: PathBuf,
}

impl Files {
    pub(super) fn new(dir: PathBuf) -> Self {
        Self { dir }
    }

    /// The file of the admission.
    pub(super) fn record(&self, id: &AdmissionId) -> PathBuf {
        self.path(id, RECORD)
    }

    /// Makes the directory of a kind and holds it until the file is dropped.
    pub(super) fn lock(&self, kind: AdmissionKind) -> Result<File, AdmissionError> {
        let dir = self.dir.join(kind.as_str());
        let locked = || {
            DirBuilder::new().recursive(true).mode(0o700).create(&dir)?;
            let dir = File::open(&dir)?;
            flock(&dir, FlockOperation::LockExclusive)?;
            Ok(dir)
        };
        locked().map_err(|source| failed(&dir, "locked", source))
    }

    pub(super) fn list(&self) -> Result<Vec<ListedAdmission>, AdmissionError> {
        let mut listed = Vec::new();
        for kind in AdmissionKind::ALL {
            let dir = self.dir.join(kind.as_str());
            let entries = match fs::read_dir(&dir) {
                Ok(entries) => entries,
                Err(e) if e.kind() == io::ErrorKind::NotFound => continue,
                Err(e) => return Err(failed(&dir, "read", e)),
            };
            for entry in entries {
                let file = entry.map_err(|e| failed(&dir, "read", e))?.path();
                let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
                // A file whose name starts with a dot is being written.
                let Some(stem) = name.strip_suffix(RECORD).filter(|stem| !stem.starts_with('.')) else {
                    continue;
                };
                listed.push(ListedAdmission { kind, id: AdmissionId::from_file_stem(kind, stem), file });
            }
        }
        listed.sort_by(|a, b| (a.kind, &a.file).cmp(&(b.kind, &b.file)));
        Ok(listed)
    }

    /// Whether there is a signature, sound or not.
    pub(super) fn is_signed(&self, id: &AdmissionId) -> Result<bool, AdmissionError> {
        let path = self.path(id, SIGNATURE);
        match fs::symlink_metadata(&path) {
            Ok(_) => Ok(true),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(e) => Err(failed(&path, "read", e)),
        }
    }

    pub(super) fn signature(
        &self,
        id: &AdmissionId,
    ) -> Result<Option<Signed<SignedAdmission>>, AdmissionError> {
        read_json(&self.path(id, SIGNATURE))
    }

    pub(super) fn revocation(&self, id: &AdmissionId) -> Result<Option<AdmissionRevocation>, AdmissionError> {
        read_json(&self.path(id, REVOCATION))
    }

    pub(super) fn write_record(&self, id: &AdmissionId, bytes: &[u8]) -> Result<(), AdmissionError> {
        write(&self.record(id), bytes)
    }

    pub(super) fn write_signature(
        &self,
        id: &AdmissionId,
        signed: &Signed<SignedAdmission>,
    ) -> Result<(), AdmissionError> {
        write_json(&self.path(id, SIGNATURE), signed)
    }

    pub(super) fn write_revocation(
        &self,
        id: &AdmissionId,
        revocation: &AdmissionRevocation,
    ) -> Result<(), AdmissionError> {
        write_json(&self.path(id, REVOCATION), revocation)
    }

    pub(super) fn remove_signature(&self, id: &AdmissionId) -> Result<(), AdmissionError> {
        self.remove(id, SIGNATURE)
    }

    /// The signature is removed first: the remaining files admit nothing at any moment.
    pub(super) fn remove_all(&self, id: &AdmissionId) -> Result<(), AdmissionError> {
        [SIGNATURE, RECORD, REVOCATION].into_iter().try_for_each(|suffix| self.remove(id, suffix))
    }

    fn remove(&self, id: &AdmissionId, suffix: &str) -> Result<(), AdmissionError> {
        let path = self.path(id, suffix);
        match fs::remove_file(&path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(e) => Err(failed(&path, "removed", e)),
            Ok(()) => sync_dir(path.parent().unwrap_or(&self.dir)).map_err(|e| failed(&path, "removed", e)),
        }
    }

    fn path(&self, id: &AdmissionId, suffix: &str) -> PathBuf {
        self.dir.join(id.kind().as_str()).join(format!("{}{suffix}", id.file_stem()))
    }
}

/// The bytes of a regular file, or none where there is nothing: no link is followed and no FIFO is waited for.
pub(super) fn read_regular(path: &Path) -> Result<Option<Vec<u8>>, AdmissionError> {
    // One byte more than the limit, so that a larger file is detected.
    match read_start(path, MAX_BYTES + 1) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(failed(path, "read", e)),
    }
}

/// Only the bytes that herma would write are accepted: any other form was edited.
fn read_json<T: DeserializeOwned + Serialize>(path: &Path) -> Result<Option<T>, AdmissionError> {
    let Some(bytes) = read_regular(path)? else { return Ok(None) };
    let bad = |why: String| AdmissionError::Bad { file: path.to_owned(), why };
    let value: T = serde_json::from_slice(&bytes).map_err(|e| bad(e.to_string()))?;
    if spelled(&value)? == bytes {
        Ok(Some(value))
    } else {
        Err(bad("herma did not write it like this".to_owned()))
    }
}

fn write_json(path: &Path, value: &impl Serialize) -> Result<(), AdmissionError> {
    write(path, &spelled(value)?)
}

fn spelled(value: &impl Serialize) -> Result<Vec<u8>, serde_json::Error> {
    let mut bytes = serde_json::to_vec_pretty(value)?;
    bytes.push(b'\n');
    Ok(bytes)
}

/// The file is durable, in full or not at all, and readable by its owner only.
fn write(path: &Path, bytes: &[u8]) -> Result<(), AdmissionError> {
    write_durably(path, bytes).map_err(|e| failed(path, "written", e))
}

fn failed(path: &Path, doing: &'static str, source: io::Error) -> AdmissionError {
    AdmissionError::Io { path: path.to_owned(), doing, source }
}
