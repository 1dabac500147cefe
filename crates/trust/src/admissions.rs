//! The admissions of an installation: files that people read and edit, and the approvers' signatures beside them.
//! A file in a repository is a draft that no run reads.

mod context;
mod error;
mod files;
mod find;
mod secrets;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use herma_core::admission::{
    AdmissionDraft, AdmissionId, AdmissionKind, AdmissionRevocation, Line, SignedAdmission,
};
use herma_core::engine::EngineName;
use herma_core::signed::Signed;
use herma_core::trust::TrustEntry;
use herma_core::{Digest, Timestamp};
use herma_evidence::signed;

pub use self::context::{AdmissionContext, RunsSince, SYSTEM_TEMP_DIRS, count_runs};
pub use self::error::AdmissionError;
use self::files::Files;
pub use self::find::AdmissionFinding;
use crate::approvers::Approver;
use crate::chain::{TrustError, TrustLog};

/// The admissions of an installation, read from its directory.
#[derive(Clone, Debug)]
pub struct Admissions {
    files: Files,
    trust: TrustLog,
}

/// The file of one admission, read: exactly these bytes are shown, and exactly these are signed.
#[derive(Clone, Debug)]
pub struct AdmissionFile {
    /// Its subject.
    pub id: AdmissionId,
    /// Its content.
    pub draft: AdmissionDraft,
    /// The bytes of the file.
    pub bytes: Vec<u8>,
}

/// A file among the admissions.
#[derive(Clone, Debug)]
pub struct ListedAdmission {
    /// The kind, by its directory.
    pub kind: AdmissionKind,
    /// Its subject, by its name; none where no admission has such a name.
    pub id: Option<AdmissionId>,
    /// The file.
    pub file: PathBuf,
}

impl AdmissionFile {
    /// The digest of the bytes.
    #[must_use]
    pub fn digest(&self) -> Digest {
        Digest::of(&self.bytes)
    }

    /// Reads a file from any place.
    pub fn read(file: &Path) -> Result<Self, AdmissionError> {
        let bytes = files::read_regular(file)?.ok_or_else(|| AdmissionError::NoFile(file.to_owned()))?;
        Self::parse(bytes).map_err(|why| AdmissionError::Bad { file: file.to_owned(), why })
    }

    fn parse(bytes: Vec<u8>) -> Result<Self, String> {
        secrets::check_file(&bytes).map_err(|e| e.to_string())?;
        let draft = AdmissionDraft::parse(&bytes).map_err(|bad| bad.to_string())?;
        secrets::check_values(&draft).map_err(|e| e.to_string())?;
        Ok(Self { id: draft.id(), draft, bytes })
    }
}

impl Admissions {
    /// The admissions whose files are below `dir`, and the trust chain that says which of them count. The directory is made
    /// when the first admission is.
    #[must_use]
    pub fn open(dir: PathBuf, trust: TrustLog) -> Self {
        Self { files: Files::new(dir), trust }
    }

    /// The directory that the record of a target names, whether or not the record counts: the run checks that.
    #[must_use]
    pub fn target_directory(dir: PathBuf, name: &str) -> Option<PathBuf> {
        let id = AdmissionId::Target(name.parse().ok()?);
        let read = AdmissionFile::read(&Files::new(dir).record(&id)).ok()?;
        let AdmissionDraft::Target(draft) = read.draft else { return None };
        draft.complete().ok().map(|record| record.path.to_path_buf())
    }

    /// Every file of an admission, by kind and name.
    pub fn list(&self) -> Result<Vec<ListedAdmission>, AdmissionError> {
        self.files.list()
    }

    /// The file of an admission.
    pub fn read(&self, id: &AdmissionId) -> Result<AdmissionFile, AdmissionError> {
        let file = self.files.record(id);
        let bytes = files::read_regular(&file)?.ok_or_else(|| AdmissionError::NotThere(id.clone()))?;
        let read =
            AdmissionFile::parse(bytes).map_err(|why| AdmissionError::Bad { file: file.clone(), why })?;
        if read.id == *id { Ok(read) } else { Err(AdmissionError::Other { file, id: read.id }) }
    }

    /// The path of an admission's file.
    #[must_use]
    pub fn file(&self, id: &AdmissionId) -> PathBuf {
        self.files.record(id)
    }

    /// The signature beside an admission, whether or not it holds.
    pub fn signature(&self, id: &AdmissionId) -> Result<Option<Signed<SignedAdmission>>, AdmissionError> {
        self.files.signature(id)
    }

    /// The signature of an admission, if it is over the current file and not revoked.
    pub(crate) fn signature_if_current(
        &self,
        id: &AdmissionId,
    ) -> Result<Option<Signed<SignedAdmission>>, AdmissionError> {
        let (read, revoked) = (self.read(id)?, self.files.revocation(id)?);
        let counts = |signed: &Signed<SignedAdmission>| {
            let record = &signed.record;
            (record.kind, &record.name, record.digest) == (id.kind(), &id.name(), read.digest())
                && revoked.as_ref().is_none_or(|revoked| revoked.revoked_at < record.signed_at)
        };
        Ok(self.files.signature(id)?.filter(counts))
    }

    /// Writes a draft. A signed admission stays as it is.
    pub fn write_draft(&self, draft: &AdmissionDraft) -> Result<PathBuf, AdmissionError> {
        let (id, yaml) = (draft.id(), check_draft(draft)?);
        let _lock = self.files.lock(id.kind())?;
        if self.files.is_signed(&id)? {
            return Err(AdmissionError::IsSigned(id));
        }
        self.files.write_record(&id, yaml.as_bytes())?;
        Ok(self.files.record(&id))
    }

    /// Signs the admission that was read, and copies it into the installation if it came from elsewhere.
    pub fn sign(
        &self,
        read: &AdmissionFile,
        approver: &Approver,
        now: Timestamp,
    ) -> Result<Signed<SignedAdmission>, AdmissionError> {
        let id = &read.id;
        if let Some(lacks) = read.draft.lacks() {
            return Err(AdmissionError::Incomplete { id: id.clone(), lacks });
        }
        let _lock = self.files.lock(id.kind())?;
        let there = files::read_regular(&self.files.record(id))?;
        let same = there.as_ref() == Some(&read.bytes);
        if !same && self.files.is_signed(id)? {
            return Err(AdmissionError::IsSigned(id.clone()));
        }
        if self.files.revocation(id)?.is_some_and(|revoked| revoked.revoked_at >= now) {
            return Err(AdmissionError::Clock(id.clone()));
        }
        let mut appending = self.trust.lock()?;
        let record = SignedAdmission {
            kind: id.kind(),
            name: id.name(),
            digest: read.digest(),
            approver: approver.name().clone(),
            signed_at: now,
            trust_head: Some(appending.head()),
        };
        let signed = signed::sign(record, approver)?;
        if !same {
            self.files.write_record(id, &read.bytes)?;
        }
        self.files.write_signature(id, &signed)?;
        // The chain comes last: until it names the signature, nothing is admitted.
        let record = signed::digest(&signed.record)?;
        appending.append(
            TrustEntry::AdmissionSigned { kind: id.kind(), name: id.name(), record },
            approver,
            now,
        )?;
        Ok(signed)
    }

    /// Takes an admission back. It needs no key: it only takes away.
    pub fn revoke(
        &self,
        id: &AdmissionId,
        reason: &Line,
        now: Timestamp,
    ) -> Result<AdmissionRevocation, AdmissionError> {
        let _lock = self.files.lock(id.kind())?;
        if !self.files.is_signed(id)? {
            return Err(AdmissionError::NotSigned(id.clone()));
        }
        // A signature from a clock that went ahead is revoked as well; one that cannot be read counts for nothing.
        let signed_at = self.files.signature(id).ok().flatten().map(|signed| signed.record.signed_at);
        let revocation = AdmissionRevocation {
            kind: id.kind(),
            name: id.name(),
            reason: reason.clone(),
            revoked_at: signed_at.map_or(now, |at| at.max(now)),
        };
        // The chain decides; the files are for people, and for a chain that cannot be appended to. The revocation comes before
        // the signature goes: between the two the signature is there and does not count.
        let appended = self.withdraw(id, now);
        self.files.write_revocation(id, &revocation)?;
        self.files.remove_signature(id)?;
        appended?;
        Ok(revocation)
    }

    /// Removes everything of an admission that was made for a while only.
    pub fn forget(&self, id: &AdmissionId, now: Timestamp) -> Result<(), AdmissionError> {
        let _lock = self.files.lock(id.kind())?;
        let appended = match self.trust.read() {
            Ok(chain) if matches!(chain.admission(id.kind(), &id.name()), Some(Some(_))) => {
                self.withdraw(id, now)
            }
            _ => Ok(()),
        };
        self.files.remove_all(id)?;
        Ok(appended?)
    }

    fn withdraw(&self, id: &AdmissionId, now: Timestamp) -> Result<(), TrustError> {
        self.trust.take_away(TrustEntry::AdmissionRevoked { kind: id.kind(), name: id.name() }, now)
    }

    /// The program of each engine whose file can be read, signed or not: whether it may run is for the gates.
    #[must_use]
    pub fn programs(&self) -> BTreeMap<EngineName, PathBuf> {
        let mut programs = BTreeMap::new();
        for listed in self.list().unwrap_or_default() {
            let Some(id @ AdmissionId::Engine(_)) = &listed.id else { continue };
            if let Ok(AdmissionFile { draft: AdmissionDraft::Engine(draft), .. }) = self.read(id)
                && let Some(program) = draft.program
            {
                programs.insert(draft.engine, program.to_path_buf());
            }
        }
        programs
    }
}

/// The text of a draft that holds nothing that an admission must not hold.
pub fn check_draft(draft: &AdmissionDraft) -> Result<String, AdmissionError> {
    let refuse = |why: String| AdmissionError::Refused { id: draft.id(), why };
    let yaml = draft.to_yaml();
    let found = secrets::check_values(draft).and_then(|()| secrets::check_file(yaml.as_bytes()));
    found.map_err(|found| refuse(found.to_string()))?;
    draft.check().map_err(|bad| refuse(bad.to_string()))?;
    Ok(yaml)
}
