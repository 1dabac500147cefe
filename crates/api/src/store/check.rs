//! Whether the store agrees with the bundles.

use std::collections::{BTreeMap, BTreeSet};

use herma_core::store::{RunQuery, RunSummary};
use herma_core::{Digest, Report, RunId};
use herma_evidence::layout;
use herma_harness::Installation;

use super::StoreCommandError;
use crate::output::{StoreCheckOutput, StoreDisagreement, StoreDisagreementKind};
use crate::reports::read_report;

/// How many rows are read at once.
const ROWS_AT_ONCE: u32 = 1_000;

/// Compares the rows of the store with the bundles of this home. The bundles are not verified.
pub fn check_store(installation: &Installation) -> Result<StoreCheckOutput, StoreCommandError> {
    let store = installation.store.call(|store| store.describe())?;
    let active: BTreeSet<_> =
        installation.home.active_runs().map_err(StoreCommandError::Home)?.into_iter().collect();
    let rows = rows(installation)?;
    let (mut bundles, mut disagreements) = (0, Vec::new());
    let runs = installation.home.run_ids().map_err(StoreCommandError::Home)?;
    let closed = |run: &RunId| installation.home.run(*run).bundle().join(layout::ATTESTATION).exists();
    for run_id in runs.iter().filter(|run| closed(run) && !active.contains(run)) {
        bundles += 1;
        let found = match read_report(&installation.home.run(*run_id).bundle()) {
            Ok(report) => compare(installation, rows.get(run_id), &report)?,
            Err(error) => Some((StoreDisagreementKind::UnreadableBundle, error.to_string())),
        };
        let disagreement = |(kind, problem)| StoreDisagreement { run_id: *run_id, kind, problem };
        disagreements.extend(found.map(disagreement));
    }
    let removed = |run: &RunId| installation.home.removed_bundle(*run).is_some();
    for run_id in rows.keys().filter(|run| !closed(run) && !active.contains(run) && !removed(run)) {
        disagreements.push(StoreDisagreement {
            run_id: *run_id,
            kind: StoreDisagreementKind::MissingBundle,
            problem: "the store has the run, and this home has no signed bundle of it".to_owned(),
        });
    }
    let counts = installation.store.call(|store| store.counts())?;
    let schema = "herma.store-check/v1";
    Ok(StoreCheckOutput { schema, ok: disagreements.is_empty(), store, counts, bundles, disagreements })
}

fn rows(installation: &Installation) -> Result<BTreeMap<RunId, RunSummary>, StoreCommandError> {
    let mut rows = BTreeMap::new();
    let mut query = RunQuery { limit: ROWS_AT_ONCE, before: None, status: None };
    loop {
        let page = installation.store.call(|store| store.runs(&query))?;
        let Some(last) = page.last() else { return Ok(rows) };
        query.before = Some(last.run_id);
        rows.extend(page.into_iter().map(|run| (run.run_id, run)));
    }
}

fn compare(
    installation: &Installation,
    row: Option<&RunSummary>,
    report: &Report,
) -> Result<Option<(StoreDisagreementKind, String)>, StoreCommandError> {
    let Some(row) = row else {
        let problem = "the store does not have the run".to_owned();
        return Ok(Some((StoreDisagreementKind::MissingRow, problem)));
    };
    if row.status != Some(report.status) {
        let stored = row.status.map_or("no verdict", |status| status.as_str());
        let problem = format!("the store has {stored}, the bundle {}", report.status.as_str());
        return Ok(Some((StoreDisagreementKind::OtherStatus, problem)));
    }
    if row.contract_digest != report.contract_digest {
        let problem = format!(
            "the store has the contract {}, the bundle {}",
            row.contract_digest, report.contract_digest
        );
        return Ok(Some((StoreDisagreementKind::OtherContract, problem)));
    }
    let stored = installation.store.call(|store| store.artifacts(report.run_id))?;
    let stored: BTreeMap<String, Digest> = stored.into_iter().map(|row| (row.path, row.sha256)).collect();
    let bundled: BTreeMap<String, Digest> =
        report.artifacts.iter().map(|(path, artifact)| (path.clone(), artifact.sha256)).collect();
    let paths: BTreeSet<_> = stored.keys().chain(bundled.keys()).collect();
    let differs = paths.into_iter().find(|path| stored.get(*path) != bundled.get(*path));
    Ok(differs.map(|path| {
        let problem =
            format!("the store has another digest of {path} than the report, or one of them has none");
        (StoreDisagreementKind::OtherArtifacts, problem)
    }))
}
