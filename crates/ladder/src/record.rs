//! The parts of a proof's record: the applicable cases, the evidence of a run, and a record without runs.

use herma_core::engine::EngineName;
use herma_core::proof::{BundleRef, NotApplicable, Proof, ProofSchema};
use herma_core::report::NeverActivated;
use herma_core::{Digest, Report, Stage, Status, VERSION};
use herma_engines::Engine;
use herma_evidence::layout;
use herma_files::{MAX_RECORD_BYTES, read_regular};
use herma_harness::{Finished, Installation};

use crate::cases::Case;
use crate::error::ProveError;

/// The failure classes that this engine cannot have, with the reason, and those that it has to be tried with.
pub(crate) fn applicable(
    engine: &dyn Engine,
    failures: &[&'static Case],
) -> (Vec<NotApplicable>, Vec<&'static Case>) {
    let (declared, name) = (engine.capabilities(), engine.name());
    let mut not_applicable = Vec::new();
    let mut applicable = Vec::new();
    for case in failures.iter().copied() {
        match case.required.lacks(declared).zip(case.required.blocker) {
            Some((lacks, expected_blocker)) => not_applicable.push(NotApplicable {
                case: case.class().to_owned(),
                expected_blocker,
                lacks,
                reason: format!("`{name}` declares no `{lacks}`"),
            }),
            None => applicable.push(case),
        }
    }
    (not_applicable, applicable)
}

/// The reference of a proof to a run's bundle.
pub(crate) fn bundle_ref(case: &Case, finished: &Finished) -> Result<BundleRef, ProveError> {
    let digest = |name: &str| {
        read_regular(&finished.bundle.join(name), MAX_RECORD_BYTES).map(|bytes| Digest::of(&bytes))
    };
    Ok(BundleRef {
        run_id: finished.report.run_id,
        engine: finished.report.engine.clone(),
        case: case.class().to_owned(),
        attestation: digest(layout::ATTESTATION).map_err(|e| ProveError::new("read a bundle", e))?,
        outcome: digest(layout::OUTCOME).ok(),
    })
}

/// How a run ended, in one line.
pub(crate) fn describe(report: &Report) -> String {
    let names: Vec<&str> = report.blockers.iter().map(|b| b.blocker.as_str()).collect();
    if names.is_empty() {
        return report.status.as_str().to_owned();
    }
    format!("{}: {}", report.status.as_str(), names.join(", "))
}

/// A proof without anything behind it.
pub(crate) fn blank(
    installation: &Installation,
    engine: &EngineName,
    stage: Stage,
    engine_digest: Option<Digest>,
    status: Status,
    reasons: Vec<String>,
) -> Proof {
    Proof {
        schema: ProofSchema::V1,
        status,
        stage,
        engine: engine.clone(),
        engine_digest,
        herma_version: VERSION.to_owned(),
        proven_at: installation.now(),
        prior: None,
        rows: Vec::new(),
        not_applicable: Vec::new(),
        baseline: None,
        comparison: Vec::new(),
        coverage: Vec::new(),
        bundles: Vec::new(),
        candidate: None,
        reasons,
        runtime_default_activation: NeverActivated,
    }
}
