//! Stage 6: whether an engine is a candidate for the default. Being one is evidence; nothing is switched by it.

use std::collections::BTreeMap;

use herma_core::comparison::Comparison;
use herma_core::contract::ContractId;
use herma_core::decision::{Decision, Purpose};
use herma_core::engine::EngineName;
use herma_core::outcome::OutcomeWord;
use herma_core::proof::{
    BundleRef, Candidate, Compared, Coverage, CoverageState, Criterion, Proof, ProofRow, Standing as Against,
};
use herma_core::store::RunQuery;
use herma_core::{Digest, Report, RunId, Stage, Status};
use herma_engines::Engine;
use herma_evidence::{layout, report};
use herma_files::{MAX_RECORD_BYTES, read_regular};
use herma_harness::Installation;
use herma_home::EnabledEngines;
use herma_trust::{OutcomeStatus, ProofStatus};

use crate::compare::Comparisons;
use crate::error::ProveError;
use crate::record::blank;

/// How many accepted runs of different contracts a candidate needs.
pub const ACCEPTED: usize = 2;
/// How many runs are looked at at once.
const PAGE: u32 = 500;

/// Judges by the records: the proofs of the stages below, two accepted runs, and the latest comparison.
pub(crate) fn judge(
    installation: &Installation,
    engine: &dyn Engine,
    digest: Digest,
) -> Result<Proof, ProveError> {
    let name = engine.name();
    let blocked = |reasons| {
        Ok(blank(installation, &name, Stage::CandidateDefault, Some(digest), Status::Blocked, reasons))
    };
    let accepted = accepted_runs(installation, &name, digest)?;
    let latest = Comparisons::of(installation).latest_for(&name);
    let comparison = match latest {
        Ok(Some(comparison)) => comparison.record,
        Ok(None) => return blocked(vec![format!("`{name}` was never compared: run `herma compare`")]),
        Err(why) => return blocked(vec![why.to_string()]),
    };
    let mut missing = absent_lanes(installation, &name, &comparison);
    if accepted.len() < ACCEPTED {
        missing.push(format!(
            "it has {} of {ACCEPTED} accepted stage 5 runs of different contracts",
            accepted.len()
        ));
    }
    if let Some(why) =
        comparison.lanes.iter().find(|lane| lane.engine == name).and_then(|lane| lane.blocked.as_ref())
    {
        missing.push(format!("its own lane could not run: {why}"));
    }
    if !missing.is_empty() {
        return blocked(missing);
    }
    let eligible = comparison.holds_its_own(&name);
    let behind: Vec<String> = against_all(&name, &comparison)
        .filter(|row| row.standing == Against::FallsBehind)
        .map(|row| format!("{}: {}", row.criterion.as_str(), row.detail))
        .collect();
    let status = if eligible { Status::Pass } else { Status::Fail };
    let bundles = bundles(installation, &accepted, &comparison)?;
    let proof = Proof {
        prior: prior(installation, engine),
        rows: rows(&accepted),
        comparison: against_all(&name, &comparison).collect(),
        coverage: coverage(installation, engine),
        bundles,
        candidate: Some(Candidate {
            eligible,
            comparison: comparison.id.to_string(),
            repetitions: comparison.repetitions,
            oldest_evidence: accepted
                .values()
                .map(|report| report.run_started_at)
                .fold(comparison.made_at, Ord::min),
            accepted: accepted.values().map(|report| report.run_id).collect(),
            blocked_lanes: comparison
                .lanes
                .iter()
                .filter_map(|lane| Some(format!("{}: {}", lane.engine, lane.blocked.as_ref()?)))
                .collect(),
        }),
        ..blank(installation, &name, Stage::CandidateDefault, Some(digest), status, behind)
    };
    installation.proofs().keep(proof.clone()).map_err(|e| ProveError::new("be kept", e))?;
    Ok(proof)
}

/// The newest accepted stage 5 run of each contract, by this very engine, whose evidence holds. Runs of a proof do not
/// count: they did no requested work.
pub fn accepted_runs(
    installation: &Installation,
    engine: &EngineName,
    digest: Digest,
) -> Result<BTreeMap<ContractId, Report>, ProveError> {
    let mut accepted = BTreeMap::new();
    let mut before: Option<RunId> = None;
    loop {
        let query = RunQuery { limit: PAGE, before, status: Some(Status::Pass) };
        let page = installation.store.call(|store| store.runs(&query));
        let page = page.map_err(|e| ProveError::new("list the runs", e))?;
        for run in page.iter().filter(|run| run.engine == *engine && run.stage == Stage::OwnedRepo) {
            if let Some(report) = accepted_work(installation, run.run_id, digest) {
                accepted.entry(report.contract_id.clone()).or_insert(report);
            }
        }
        before = page.last().map(|run| run.run_id);
        if page.len() < PAGE as usize {
            return Ok(accepted);
        }
    }
}

fn accepted_work(installation: &Installation, run_id: RunId, digest: Digest) -> Option<Report> {
    let bundle = installation.home.run(run_id).bundle();
    let read = |name: &str| read_regular(&bundle.join(name), MAX_RECORD_BYTES).ok();
    let report = report::parse(&read(layout::REPORT)?).ok()?;
    let decision: Decision = serde_json::from_slice(&read(layout::DECISION)?).ok()?;
    let accepted = match installation.outcomes().status(&report).ok()? {
        OutcomeStatus::Given(given) => given.record.outcome == OutcomeWord::Accepted,
        _ => false,
    };
    let counts = accepted
        && decision.purpose == Purpose::Work
        && report.engine_digest == Some(digest)
        && installation.evidence().verify(run_id).ok();
    counts.then_some(report)
}

/// Engines that are switched on and were left out of the comparison: a candidate is measured against all of them.
fn absent_lanes(installation: &Installation, name: &EngineName, comparison: &Comparison) -> Vec<String> {
    let enabled = EnabledEngines::of(&installation.home);
    let compared = |engine: &EngineName| comparison.lanes.iter().any(|lane| lane.engine == *engine);
    let absent = |engine: &EngineName| {
        let counts = *engine == EngineName::fake() || enabled.is_on(engine);
        engine != name && counts && !compared(engine)
    };
    let names = installation.engines().names();
    names
        .iter()
        .filter(|engine| absent(engine))
        .map(|engine| format!("`{engine}` was not compared with it"))
        .collect()
}

/// The deciding criteria against every other lane.
fn against_all<'a>(name: &'a EngineName, comparison: &'a Comparison) -> impl Iterator<Item = Compared> + 'a {
    let deciding = |criterion: &Criterion| Criterion::DECIDING.contains(criterion);
    comparison.table.iter().filter(move |row| row.lane == *name && deciding(&row.criterion)).map(|row| {
        Compared {
            criterion: row.criterion,
            standing: row.standing,
            detail: format!("against {}: {}", row.other, row.detail),
        }
    })
}

fn rows(accepted: &BTreeMap<ContractId, Report>) -> Vec<ProofRow> {
    let row = |(contract, report): (&ContractId, &Report)| ProofRow {
        case: format!("accepted: {contract}"),
        expected_status: Status::Pass,
        expected_blocker: None,
        held: true,
        detail: "pass, accepted by its operator".to_owned(),
        run_id: Some(report.run_id),
    };
    accepted.iter().map(row).collect()
}

/// The accepted runs and everything that was compared: if one of them breaks, so does the candidate.
fn bundles(
    installation: &Installation,
    accepted: &BTreeMap<ContractId, Report>,
    comparison: &Comparison,
) -> Result<Vec<BundleRef>, ProveError> {
    let digest = |run: RunId, name: &str| {
        let file = installation.home.run(run).bundle().join(name);
        read_regular(&file, MAX_RECORD_BYTES)
            .map(|bytes| Digest::of(&bytes))
            .map_err(|e| ProveError::new("read a bundle", e))
    };
    let mut bundles = Vec::new();
    for report in accepted.values() {
        bundles.push(BundleRef {
            run_id: report.run_id,
            engine: report.engine.clone(),
            case: "accepted".to_owned(),
            attestation: digest(report.run_id, layout::ATTESTATION)?,
            outcome: Some(digest(report.run_id, layout::OUTCOME)?),
        });
    }
    for lane in &comparison.lanes {
        bundles.extend(lane.runs.iter().map(|run| BundleRef {
            run_id: run.run_id,
            engine: lane.engine.clone(),
            case: "compared".to_owned(),
            attestation: run.attestation,
            outcome: None,
        }));
    }
    Ok(bundles)
}

/// Every row of the failure matrix, by the first stage whose proof covers it.
fn coverage(installation: &Installation, engine: &dyn Engine) -> Vec<Coverage> {
    let proofs = installation.proofs();
    let mut coverage: Vec<Coverage> = super::coverage::coverage(Stage::CandidateDefault, &[], &[]);
    for stage in Stage::ALL {
        let ProofStatus::Proven(proof) = proofs.status(engine, stage) else { continue };
        let settled = proof.record.coverage.into_iter().filter(|row| row.state != CoverageState::Blocked);
        for row in settled {
            let open =
                |known: &&mut Coverage| known.blocker == row.blocker && known.state == CoverageState::Blocked;
            if let Some(known) = coverage.iter_mut().find(open) {
                *known = Coverage { reason: format!("stage {stage}: {}", row.reason), ..row };
            }
        }
    }
    coverage
}

fn prior(installation: &Installation, engine: &dyn Engine) -> Option<Digest> {
    match installation.proofs().status(engine, Stage::OwnedRepo) {
        ProofStatus::Proven(proof) => herma_evidence::signed::digest(&proof.record).ok(),
        _ => None,
    }
}
