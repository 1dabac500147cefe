//! Stage 6: whether an engine is a candidate for the default. Being one is evidence; nothing is switched by it.

use herma_engines::Engine;
use herma_model::proof::Proof;
use herma_model::{Digest, Stage, Status};

use super::prove::{ProveError, blank};
use crate::installation::Installation;

pub(super) fn judge(installation: &Installation, engine: &dyn Engine, digest: Digest) -> Result<Proof, ProveError> {
    let reasons = vec!["there is no comparison of this engine yet: run `herma compare`".to_owned()];
    Ok(blank(installation, &engine.name(), Stage::CandidateDefault, Some(digest), Status::Blocked, reasons))
}
