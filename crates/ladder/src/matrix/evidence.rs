//! Judges the evidence of a row: one run, closed, in a whole bundle that verifies, with the row's blocker and event.

use std::collections::BTreeSet;

use herma_core::event::Event;
use herma_core::{Blocker, EventType, Report, RunId, Status};
use herma_evidence::{layout, report};
use herma_files::{MAX_RECORD_BYTES, read_regular};
use herma_harness::{Installation, recover};
use herma_trust::OutcomeStatus;

use super::row::expected_status;
use super::site::{Site, because, names};
use crate::failure_matrix::Row;

/// How a run must end.
pub(super) enum Expected<'a> {
    /// As the row has it.
    Row(&'a Row),
    /// With a pass; with a bridge, the contract's provider and the one that answered.
    Pass { bridge: Option<(&'a str, &'a str)> },
}

/// How it ended.
#[derive(Default)]
pub(super) struct Seen {
    pub(super) status: Option<Status>,
    pub(super) exit_code: Option<i32>,
}

impl Expected<'_> {
    pub(super) fn status(&self) -> Status {
        match self {
            Self::Row(row) => expected_status(row.blocker),
            Self::Pass { .. } => Status::Pass,
        }
    }
}

/// Judges what the one run left that was not there earlier. Each difference is a sentence in `problems`.
pub(super) fn check(
    site: &Site,
    expected: &Expected<'_>,
    earlier: &BTreeSet<RunId>,
    problems: &mut Vec<String>,
) -> Result<Seen, String> {
    let installation = site.open()?;
    recover(&installation).map_err(because("close a run that was killed"))?;
    let new: Vec<RunId> = site.runs().difference(earlier).copied().collect();
    let [run] = new[..] else {
        problems.push(format!("it left {} runs, not one", new.len()));
        return Ok(Seen::default());
    };
    let dirs = installation.home.run(run);
    let bytes = read_regular(&dirs.bundle().join(layout::REPORT), MAX_RECORD_BYTES)
        .map_err(because("read the report"))?;
    let report = report::parse(&bytes).map_err(because("read the report"))?;
    if report.status != expected.status() {
        let (is, must) = (report.status.as_str(), expected.status().as_str());
        problems.push(format!("the run is a {is}, and must be a {must}: {}", blockers(&report)));
    }
    match expected {
        Expected::Row(row) => check_row(&installation, row, &report, problems),
        Expected::Pass { bridge: Some((asked, answered)) } => {
            let seen = (report.model_provider.as_deref(), report.model_runtime_provider.as_deref());
            if seen != (Some(*asked), Some(*answered)) {
                problems
                    .push(format!("the report does not name `{answered}` as what answered for `{asked}`"));
            }
        }
        Expected::Pass { bridge: None } => {}
    }
    check_bundle(&installation, &report, problems);
    Ok(Seen { status: Some(report.status), exit_code: None })
}

fn blockers(report: &Report) -> String {
    let found: Vec<&str> = report.blockers.iter().map(|record| record.blocker.as_str()).collect();
    if found.is_empty() { "it has no blocker".to_owned() } else { format!("it has {}", found.join(", ")) }
}

fn check_row(installation: &Installation, row: &Row, report: &Report, problems: &mut Vec<String>) {
    let blocker = row.blocker;
    if blocker == Blocker::MissingOutcome {
        let outcome = installation.outcomes().status(report);
        if !matches!(outcome, Ok(OutcomeStatus::Missing(_))) {
            problems.push("the outcome is not missing after its time".to_owned());
        }
    } else {
        match report.blockers.iter().find(|record| record.blocker == blocker) {
            None => problems.push(format!("`{blocker}` is not among the blockers: {}", blockers(report))),
            Some(record) if record.detail.is_empty() || record.next_step.is_empty() => {
                problems.push(format!("`{blocker}` has no detail or no next step"));
            }
            Some(_) => {}
        }
    }
    let kinds = event_types(installation, report.run_id);
    if !kinds.contains(row.event.as_str()) {
        problems.push(format!("the event `{}` is missing", row.event));
    }
    let started = [EventType::EngineStarted, EventType::WorkspacePrepared];
    let is_started = started.iter().any(|kind| kinds.contains(kind.as_str()));
    if row.event == EventType::EngineGateBlocked && (report.engine_started || is_started) {
        problems.push("something was started behind a gate that blocks".to_owned());
    }
}

fn event_types(installation: &Installation, run: RunId) -> BTreeSet<String> {
    let file = installation.home.run(run).bundle().join(layout::EVENTS);
    let bytes = read_regular(&file, MAX_RECORD_BYTES).unwrap_or_default();
    let lines = bytes.split(|byte| *byte == b'\n');
    let events = lines.filter_map(|line| serde_json::from_slice::<Event>(line).ok());
    events.map(|event| event.kind.as_str().to_owned()).collect()
}

/// The bundle is whole and verifies, nothing else is left of the run, and the store has the same verdict.
fn check_bundle(installation: &Installation, report: &Report, problems: &mut Vec<String>) {
    let run = report.run_id;
    let dirs = installation.home.run(run);
    let list = installation.evidence().verify(run);
    if !list.ok() {
        let failed: Vec<&str> = list.failed().map(|check| check.name.as_str()).collect();
        problems.push(format!("the bundle does not verify: {}", failed.join(", ")));
    }
    for name in layout::EXPECTED.into_iter().chain([layout::ATTESTATION]) {
        if dirs.bundle().join(name).is_file() == report.not_applicable.contains_key(name) {
            problems.push(format!("{name} is neither in the bundle nor excused, or both"));
        }
    }
    let left: Vec<String> = names(dirs.root())
        .into_iter()
        .filter(|name| !matches!(name.as_str(), "bundle" | "session"))
        .collect();
    if !left.is_empty() {
        problems.push(format!("the run left {}", left.join(", ")));
    }
    if !names(&installation.home.root().join("active")).is_empty() {
        problems.push("a run is still marked as active".to_owned());
    }
    let name = run.to_string();
    let stored = installation.store.call(|store| store.find_runs(&name)).unwrap_or_default();
    if stored.first().and_then(|row| row.status) != Some(report.status) {
        problems.push("the store does not have the verdict of the report".to_owned());
    }
}
