//! The proofs of this installation, and whether each is still valid.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use herma_core::engine::EngineName;
use herma_core::proof::{BundleRef, Proof};
use herma_core::signed::Signed;
use herma_core::{Digest, Stage, Status, VERSION};
use herma_engines::Engine;
use herma_evidence::{InstallationKey, layout, signed};
use herma_files::{MAX_RECORD_BYTES, read_regular};
use herma_home::write_durably;

use crate::evidence::RunEvidence;
use crate::stage_cases::{StageCase, stage_cases};

/// Whether an engine has proven a stage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProofStatus {
    /// The stage needs no proof of this engine: it is part of herma itself.
    BuiltIn,
    /// There is a proof, and everything behind it holds.
    Proven(Box<Signed<Proof>>),
    /// There is none.
    Missing,
    /// There is one of another version of herma, or of another program. The text says which; it has to be proven again.
    Stale(String),
    /// There was one, and it holds no longer. The text says why; it has to be proven again.
    Broken(String),
}

impl ProofStatus {
    /// Whether the stage counts as proven.
    #[must_use]
    pub fn holds(&self) -> bool {
        matches!(self, Self::BuiltIn | Self::Proven(_))
    }

    /// Why there is a proof that does not count; none where it counts, or where there is none.
    #[must_use]
    pub fn why_lost(&self) -> Option<&str> {
        match self {
            Self::Stale(why) | Self::Broken(why) => Some(why),
            Self::BuiltIn | Self::Proven(_) | Self::Missing => None,
        }
    }
}

/// The proofs of one installation.
pub struct Proofs<'a> {
    evidence: RunEvidence<'a>,
    key: &'a InstallationKey,
}

impl<'a> Proofs<'a> {
    /// The proofs over this evidence, signed with this key.
    #[must_use]
    pub fn new(evidence: RunEvidence<'a>, key: &'a InstallationKey) -> Self {
        Self { evidence, key }
    }

    /// The path of a stage's proof.
    #[must_use]
    pub fn file(&self, engine: &EngineName, stage: Stage) -> PathBuf {
        self.evidence.home.root().join("proofs").join(engine.as_str()).join(format!("stage-{stage}.json"))
    }

    /// Signs a proof and puts it in the place of the one before.
    pub fn keep(&self, proof: Proof) -> io::Result<Signed<Proof>> {
        let file = self.file(&proof.engine, proof.stage);
        fs::create_dir_all(file.parent().unwrap_or(Path::new("/")))?;
        let signed = signed::sign(proof, self.key)?;
        let mut bytes = serde_json::to_vec_pretty(&signed)?;
        bytes.push(b'\n');
        write_durably(&file, &bytes)?;
        Ok(signed)
    }

    /// The lowest stage up to `stage` that the engine has not proven, with the reason; none if all are.
    #[must_use]
    pub fn first_unproven(&self, engine: &dyn Engine, stage: Stage) -> Option<(Stage, ProofStatus)> {
        let rungs = Stage::ALL.into_iter().take_while(|rung| *rung <= stage);
        rungs.map(|rung| (rung, self.status(engine, rung))).find(|(_, status)| !status.holds())
    }

    /// Whether the engine has proven this one stage.
    #[must_use]
    pub fn status(&self, engine: &dyn Engine, stage: Stage) -> ProofStatus {
        if engine.built_in() && stage <= Stage::CopiedRepo {
            return ProofStatus::BuiltIn;
        }
        let bytes = match read_regular(&self.file(&engine.name(), stage), MAX_RECORD_BYTES) {
            Ok(bytes) => bytes,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return ProofStatus::Missing,
            Err(e) => return ProofStatus::Broken(format!("its proof cannot be read: {e}")),
        };
        match self.check(&bytes, engine, stage) {
            Ok(proof) => ProofStatus::Proven(Box::new(proof)),
            Err(lost) => lost,
        }
    }

    fn check(&self, bytes: &[u8], engine: &dyn Engine, stage: Stage) -> Result<Signed<Proof>, ProofStatus> {
        let proof = self.read(bytes, &engine.name(), stage).map_err(ProofStatus::Broken)?;
        let record = &proof.record;
        if record.herma_version != VERSION {
            return Err(ProofStatus::Stale(format!(
                "it is stale: proven with herma {}, this is {VERSION}",
                record.herma_version
            )));
        }
        let digest = engine.digest().map_err(|e| ProofStatus::Broken(e.to_string()))?;
        if record.engine_digest != Some(digest) {
            let proven = record.engine_digest.map_or_else(|| "nothing".to_owned(), |d| d.to_string());
            return Err(ProofStatus::Stale(format!(
                "it is stale: proven was {proven}, the engine is now {digest}"
            )));
        }
        missing_case(record, engine).map_or(Ok(()), |why| Err(ProofStatus::Broken(why)))?;
        for bundle in &record.bundles {
            self.bundle_holds(bundle).map_err(|why| {
                ProofStatus::Broken(format!(
                    "the bundle of run {} ({}) broke: {why}",
                    bundle.run_id, bundle.case
                ))
            })?;
        }
        Ok(proof)
    }

    /// A proof that was signed here, of this engine and stage, and passed.
    fn read(&self, bytes: &[u8], engine: &EngineName, stage: Stage) -> Result<Signed<Proof>, String> {
        let proof: Signed<Proof> =
            serde_json::from_slice(bytes).map_err(|e| format!("its proof cannot be read: {e}"))?;
        let key = self.key.public();
        signed::check(&proof, &key).map_err(|e| format!("its proof was not signed here: {e}"))?;
        let record = &proof.record;
        if record.engine != *engine || record.stage != stage {
            return Err(format!("its proof is of `{}`, stage {}", record.engine, record.stage));
        }
        if record.status != Status::Pass {
            return Err(format!("the last attempt to prove it was a {}", record.status.as_str()));
        }
        Ok(proof)
    }

    /// Whether a bundle is still the one that the proof was made on, every byte of it.
    fn bundle_holds(&self, bundle: &BundleRef) -> Result<(), String> {
        let dir = self.evidence.home.run(bundle.run_id).bundle();
        if digest_of(&dir.join(layout::ATTESTATION))? != bundle.attestation {
            return Err(format!("{} is not the one that was proven with", layout::ATTESTATION));
        }
        if let Some(outcome) = bundle.outcome
            && digest_of(&dir.join(layout::OUTCOME))? != outcome
        {
            return Err(format!("{} is not the one that was proven with", layout::OUTCOME));
        }
        match self.evidence.verify(bundle.run_id).failed().next() {
            Some(failed) => Err(format!("{}: {}", failed.name.as_str(), failed.detail)),
            None => Ok(()),
        }
    }
}

/// Why a proof does not cover its stage: a case was neither run, nor is it one that the engine cannot have.
fn missing_case(record: &Proof, engine: &dyn Engine) -> Option<String> {
    let declared = engine.capabilities();
    let covered = |case: &StageCase| {
        let ran = record.rows.iter().any(|row| row.held && row.case == case.class);
        let left_out = record.not_applicable.iter().find(|row| row.case == case.class);
        ran || left_out.is_some_and(|row| case.lacks(declared) == Some(row.lacks))
    };
    let case = stage_cases(record.stage).iter().find(|case| !covered(case))?;
    Some(format!("its proof has no run of `{}`", case.class))
}

fn digest_of(file: &Path) -> Result<Digest, String> {
    let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
    read_regular(file, MAX_RECORD_BYTES)
        .map(|bytes| Digest::of(&bytes))
        .map_err(|e| format!("{name} cannot be read: {e}"))
}
