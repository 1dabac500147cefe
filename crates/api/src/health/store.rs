//! Checks of the store against the bundles, and of the bundles themselves.

use std::collections::BTreeMap;
use std::fs;

use herma_core::store::RunSummary;
use herma_core::{Blocker, RunId};
use herma_evidence::layout;

use super::checklist::Checklist;
use crate::records::Records;
use crate::reports::read_report;

/// The runs that have a bundle in the home.
fn bundled(records: &Records<'_>) -> Vec<RunId> {
    let entries = fs::read_dir(records.installation.home.root().join("runs")).into_iter().flatten().flatten();
    let ids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<RunId>().ok());
    let closed =
        |run: &RunId| records.installation.home.run(*run).bundle().join(layout::ATTESTATION).exists();
    let mut ids: Vec<RunId> = ids.filter(closed).collect();
    ids.sort_unstable();
    ids
}

/// Every bundle has its row in the store, and the two agree.
pub(super) fn rows(records: &Records<'_>, runs: &[RunSummary], list: &mut Checklist<'_>) {
    let rows: BTreeMap<RunId, &RunSummary> = runs.iter().map(|run| (run.run_id, run)).collect();
    let (bundled, mut problems) = (bundled(records), Vec::new());
    for run in &bundled {
        match rows.get(run) {
            None => problems.push(format!("run {run} has a bundle and no row in the store")),
            Some(row) => problems.extend(differs(records, row)),
        }
    }
    if bundled.is_empty() && runs.is_empty() {
        return list.not_applicable("store_rows", "there is no run yet");
    }
    list.judged("store_rows", &problems, format!("{} bundles agree with their rows", bundled.len()));
}

fn differs(records: &Records<'_>, row: &RunSummary) -> Option<String> {
    let run = row.run_id;
    // A report that cannot be read is for the check of the bundles.
    let report = read_report(&records.installation.home.run(run).bundle()).ok()?;
    let blockers: Vec<Blocker> = report.blockers.iter().map(|record| record.blocker).collect();
    let same = [
        (report.run_id == run, "the run"),
        (report.contract_digest == row.contract_digest, "the contract"),
        (report.engine == row.engine, "the engine"),
        (report.stage == row.stage, "the stage"),
        (Some(report.status) == row.status, "the verdict"),
        (blockers == row.blockers, "the blockers"),
    ];
    let (_, what) = same.into_iter().find(|(same, _)| !same)?;
    Some(format!("the store and the bundle of run {run} differ in {what}"))
}

/// Every bundle verifies, and every run that ended has one, or the record that `herma gc` removed it.
pub(super) fn bundles(records: &Records<'_>, runs: &[RunSummary], list: &mut Checklist<'_>) {
    let removed = |run: &RunId| records.installation.home.removed_bundle(*run).is_some();
    let ended = runs.iter().filter(|run| run.status.is_some()).map(|run| run.run_id);
    let ended = ended.filter(|run| !removed(run));
    let mut all: Vec<RunId> = ended.chain(bundled(records)).collect();
    all.sort_unstable();
    all.dedup();
    if all.is_empty() {
        return list.not_applicable("bundles", "there is no run yet");
    }
    let mut problems = Vec::new();
    for run in &all {
        if let Err(why) = records.run(*run) {
            problems.push(why);
            if list.fails_fast() {
                break;
            }
        }
    }
    list.judged("bundles", &problems, format!("{} bundles verify", all.len()));
}
