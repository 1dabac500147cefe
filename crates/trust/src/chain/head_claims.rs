//! Records that name a head of the trust chain: bundles and signed admissions. A chain that does not
//! contain such a head was rolled back or replaced.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use herma_core::admission::{AdmissionKind, SignedAdmission};
use herma_core::signed::Signed;
use herma_core::trust::TrustHead;
use herma_core::{Digest, RunId};
use herma_evidence::envelope::{Envelope, Predicate};
use herma_evidence::{InstallationKey, PublicKey, layout};
use herma_files::{MAX_RECORD_BYTES, read_regular};

use super::checked_runs::CheckedRuns;

/// So many bundles are read at most at a run's start before the list of checked runs is written anew.
const MAX_UNLISTED: usize = 16;

/// Something that names a head of the chain.
#[derive(Clone, Debug)]
pub(super) struct HeadClaim {
    /// Its name in messages.
    pub(super) by: String,
    /// The head that it names.
    pub(super) head: TrustHead,
}

/// The directories that hold records which name a head.
#[derive(Clone, Debug)]
pub(super) struct HeadClaims {
    runs: PathBuf,
    admissions: PathBuf,
    checked: PathBuf,
    pub(super) installation: PublicKey,
    /// The key that signs the list of checked runs; without it none is written.
    key: Option<Arc<InstallationKey>>,
    /// The attestations that this process has read, each with the head that it names; a closed bundle does not change.
    heads: Arc<Mutex<HashMap<RunId, (Digest, TrustHead)>>>,
}

impl HeadClaims {
    /// The directories of the home at `root`, of the installation with this public key.
    pub(super) fn new(root: &Path, installation: PublicKey, key: Option<Arc<InstallationKey>>) -> Self {
        let (runs, admissions) = (root.join("runs"), root.join("admissions"));
        let checked = root.join("trust").join("checked-runs");
        Self { runs, admissions, checked, installation, key, heads: Arc::default() }
    }

    /// The bundle with the highest head of those that this installation signed and whose head is not in the chain that
    /// ends with `chain_head`. Every bundle is read that was not found to agree before: the name of a directory proves
    /// nothing about its age. A signature is checked only where it decides.
    pub(super) fn highest_unknown(
        &self,
        chain_head: TrustHead,
        is_known: impl Fn(&TrustHead) -> bool,
    ) -> Option<HeadClaim> {
        let checked = CheckedRuns::read(&self.checked, &self.installation)
            .filter(|checked| is_known(&checked.head))
            .map_or_else(HashMap::new, |checked| checked.runs);
        let (mut listed, mut unlisted) = (HashMap::new(), Vec::new());
        for run in self.run_ids() {
            match checked.get(&run) {
                Some(digest) if self.has_attestation(run, *digest) => drop(listed.insert(run, *digest)),
                _ => unlisted.push(run),
            }
        }
        let (known, mut unknown): (Vec<_>, Vec<_>) =
            self.heads(unlisted).into_iter().partition(|(_, (_, head))| is_known(head));
        unknown.sort_unstable_by_key(|(_, (_, head))| Reverse(head.sequence));
        let claim = unknown.into_iter().find_map(|(run, _)| self.bundle(run, Some(&self.installation)));
        if claim.is_none() && known.len() > MAX_UNLISTED {
            listed.extend(known.into_iter().map(|(run, (digest, _))| (run, digest)));
            self.list(chain_head, listed);
        }
        claim
    }

    /// Writes the list of checked runs, as well as that goes: without it, bundles are read again.
    fn list(&self, head: TrustHead, runs: HashMap<RunId, Digest>) {
        if let Some(key) = &self.key {
            let _ = CheckedRuns { head, runs }.write(&self.checked, key);
        }
    }

    /// Whether the attestation of this run is the one with this digest.
    fn has_attestation(&self, run: RunId, digest: Digest) -> bool {
        attestation(&self.bundle_dir(run)).is_some_and(|bytes| Digest::of(&bytes) == digest)
    }

    /// The attestation of each of these runs, and the head that it names, signed by any key.
    fn heads(&self, runs: Vec<RunId>) -> Vec<(RunId, (Digest, TrustHead))> {
        let mut read = self.heads.lock().unwrap_or_else(PoisonError::into_inner);
        let mut head = |run: RunId| {
            if let Some(found) = read.get(&run) {
                return Some((run, *found));
            }
            let bytes = attestation(&self.bundle_dir(run))?;
            let claim = claim_of(run, &predicate(&bytes, None)?)?;
            Some((run, *read.entry(run).or_insert((Digest::of(&bytes), claim.head))))
        };
        runs.into_iter().filter_map(&mut head).collect()
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
        claim_of(run, &attested(&self.bundle_dir(run), key)?)
    }

    fn bundle_dir(&self, run: RunId) -> PathBuf {
        self.runs.join(run.to_string()).join("bundle")
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

/// The head that the bundle of this run names.
fn claim_of(run: RunId, predicate: &Predicate) -> Option<HeadClaim> {
    let head = predicate.trust_head.filter(|_| predicate.run_id == run)?;
    Some(HeadClaim { by: format!("the bundle of run {run}"), head })
}

/// The predicate of a bundle's attestation; with a key, only if that key signed it.
pub(super) fn attested(bundle: &Path, key: Option<&PublicKey>) -> Option<Predicate> {
    predicate(&attestation(bundle)?, key)
}

fn attestation(bundle: &Path) -> Option<Vec<u8>> {
    read_regular(&bundle.join(layout::ATTESTATION), MAX_RECORD_BYTES).ok()
}

fn predicate(attestation: &[u8], key: Option<&PublicKey>) -> Option<Predicate> {
    let envelope = Envelope::parse(attestation).ok()?;
    if let Some(key) = key {
        let (key_id, signature) = envelope.signature().ok()?;
        if key_id != key.key_id() || !key.verifies(&envelope.signed().ok()?, &signature) {
            return None;
        }
    }
    Some(envelope.statement().ok()?.predicate)
}
