//! Records that name a head of the trust chain: bundles and signed admissions. A chain that does not
//! contain such a head was rolled back or replaced.

use std::fs;
use std::path::{Path, PathBuf};

use herma_core::RunId;
use herma_core::admission::{AdmissionKind, SignedAdmission};
use herma_core::signed::Signed;
use herma_core::trust::TrustHead;
use herma_evidence::envelope::{Envelope, Predicate};
use herma_evidence::{PublicKey, layout};
use herma_files::{MAX_RECORD_BYTES, read_regular};

/// How many of the newest run directories are looked at for a bundle that names a head.
const NEWEST: usize = 64;

/// Something that names a head of the chain.
#[derive(Clone, Debug)]
pub(super) struct HeadClaim {
    /// What, for messages.
    pub(super) by: String,
    /// The head that it names.
    pub(super) head: TrustHead,
}

/// The directories that hold records which name a head.
#[derive(Clone, Debug)]
pub(super) struct HeadClaims {
    pub(super) runs: PathBuf,
    pub(super) admissions: PathBuf,
    pub(super) installation: PublicKey,
}

impl HeadClaims {
    /// The newest bundles that name a head and that this installation signed, at most `most` of them.
    pub(super) fn newest(&self, most: usize) -> Vec<HeadClaim> {
        let newest = self.run_ids().into_iter().take(NEWEST);
        newest.filter_map(|run| self.bundle(run, Some(&self.installation))).take(most).collect()
    }

    /// Every bundle of this installation and every signed admission that names a head.
    pub(super) fn all(&self) -> Vec<HeadClaim> {
        let mut all: Vec<_> =
            self.run_ids().into_iter().filter_map(|run| self.bundle(run, Some(&self.installation))).collect();
        all.extend(self.signed_admissions());
        all
    }

    /// Whatever claims that there was a chain with records. The claim alone is enough to refuse another start, so that no
    /// signature is looked at: the key that made it may have been removed.
    pub(super) fn claim(&self) -> Option<HeadClaim> {
        let bundles = self.run_ids().into_iter().filter_map(|run| self.bundle(run, None));
        bundles.chain(self.signed_admissions()).find(|claim| claim.head.sequence > 0)
    }

    /// The runs of the home, newest first.
    fn run_ids(&self) -> Vec<RunId> {
        let names = fs::read_dir(&self.runs).into_iter().flatten().flatten().map(|entry| entry.file_name());
        let mut names: Vec<_> = names.filter_map(|name| name.into_string().ok()).collect();
        names.sort_unstable_by(|a, b| b.cmp(a));
        names.iter().filter_map(|name| name.parse().ok()).collect()
    }

    fn bundle(&self, run: RunId, key: Option<&PublicKey>) -> Option<HeadClaim> {
        let predicate = attested(&self.runs.join(run.to_string()).join("bundle"), key)?;
        let head = predicate.trust_head.filter(|_| predicate.run_id == run)?;
        Some(HeadClaim { by: format!("the bundle of run {run}"), head })
    }

    fn signed_admissions(&self) -> Vec<HeadClaim> {
        let dirs = AdmissionKind::ALL.map(|kind| self.admissions.join(kind.as_str()));
        let files = dirs.iter().flat_map(|dir| fs::read_dir(dir).into_iter().flatten().flatten());
        let signed =
            files.map(|entry| entry.path()).filter(|path| path.to_string_lossy().ends_with(".signed.json"));
        let claim = |path: PathBuf| {
            let bytes = read_regular(&path, MAX_RECORD_BYTES).ok()?;
            let record = serde_json::from_slice::<Signed<SignedAdmission>>(&bytes).ok()?.record;
            let by = format!("the signed admission of {} `{}`", record.kind, record.name);
            Some(HeadClaim { by, head: record.trust_head? })
        };
        signed.filter_map(claim).collect()
    }
}

/// The predicate of a bundle's attestation; with a key, only if that key signed it.
pub(super) fn attested(bundle: &Path, key: Option<&PublicKey>) -> Option<Predicate> {
    let bytes = read_regular(&bundle.join(layout::ATTESTATION), MAX_RECORD_BYTES).ok()?;
    let envelope = Envelope::parse(&bytes).ok()?;
    if let Some(key) = key {
        let (key_id, signature) = envelope.signature().ok()?;
        if key_id != key.key_id() || !key.verifies(&envelope.signed().ok()?, &signature) {
            return None;
        }
    }
    Some(envelope.statement().ok()?.predicate)
}
