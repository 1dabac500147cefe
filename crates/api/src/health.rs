//! Health: one status over the whole installation, from evidence. Every check has a name, and a failing one is named.

mod adapters;
mod checklist;
mod evidence;
mod keys;
mod matrix;
mod store;

use std::io;

use herma_core::health::{HealthOutcome, HealthReport, HealthSchema, HealthStatus};
use herma_core::reference::Reference;
use herma_core::store::StoreError;
use herma_core::{Digest, RunId, Timestamp, VERSION};
use herma_harness::{Installation, OpenError};
use herma_ladder::MatrixWatch;

use self::checklist::Checklist;
pub use self::checklist::HealthWatch;
use crate::health_records::HealthRecords;
use crate::matrix::MatrixUseError;
use crate::records::Records;
use crate::summary::{digest, summary_of};
use crate::summary_check::check_summary_of;

/// The checks to make.
#[derive(Clone, Copy, Debug, Default)]
pub struct HealthOrder {
    /// Stop at the first check that fails.
    pub fail_fast: bool,
    /// Leave the failure matrix out. Then health is never green.
    pub skip_matrix: bool,
}

/// Health could not be checked, which says nothing about it.
#[derive(Debug, thiserror::Error)]
pub enum HealthError {
    /// The failure matrix was interrupted or could not be recorded.
    #[error(transparent)]
    Matrix(#[from] MatrixUseError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The record could not be kept.
    #[error("the record of the health check could not be kept: {0}")]
    Keep(io::Error),
    /// The system gave no randomness.
    #[error("the record could not be named: the system gave no randomness")]
    Random,
}

/// The groups of checks, in their order. One that is not reached is listed under its name.
const GROUPS: [&str; 13] = [
    "installation_key",
    "trust_chain",
    "approvers",
    "admissions",
    "store_rows",
    "bundles",
    "outcomes",
    "proofs",
    "comparison",
    "refresh",
    "audit_chain",
    "control_summary",
    "matrix",
];

/// Checks an installation and records the result in it. Nothing else in the home is changed.
pub fn health(
    installation: &Installation,
    order: HealthOrder,
    watch: &dyn HealthWatch,
    rows: &dyn MatrixWatch,
) -> Result<HealthReport, HealthError> {
    let records = Records::of(installation);
    let mut list = Checklist::new(order.fail_fast, watch);
    list.group("installation_key", |list| keys::installation_key(installation, list));
    list.group("trust_chain", |list| keys::trust_chain(installation, list));
    list.group("approvers", |list| keys::approvers(&records, list));
    list.group("admissions", |list| keys::admissions(&records, list));
    let runs = records.runs()?;
    list.group("store_rows", |list| store::rows(&records, &runs, list));
    list.group("bundles", |list| store::bundles(&records, &runs, list));
    list.group("outcomes", |list| evidence::outcomes(&records, &runs, list));
    list.group("proofs", |list| evidence::proofs(&records, list));
    list.group("comparison", |list| evidence::comparison(installation, list));
    list.group("refresh", |list| {
        list.not_applicable("refresh", "this version of herma has no refresh of a candidate's evidence");
    });
    list.group("audit_chain", |list| {
        list.not_applicable("audit_chain", "this version of herma has no server, and so no audit chain");
    });
    let mut summary_digest = None;
    list.group("control_summary", |list| summary_digest = control_summary(&records, list));
    let mut matrix_report = None;
    list.try_group("matrix", |list| {
        matrix_report = matrix::run(installation, order, rows, list)?;
        adapters::check(&records, matrix_report.as_ref(), list);
        Ok::<(), MatrixUseError>(())
    })?;
    let matrix_report_path = matrix_report.map(|report| Reference::Matrix(report.id));
    let report = HealthReport { matrix_report_path, summary_digest, ..report(list, installation.now())? };
    HealthRecords::of(installation).keep(report).map_err(HealthError::Keep)
}

/// The health of an installation that cannot be opened: red, by the name of the part that fails. It is not recorded.
pub fn health_of_unopened(
    error: &OpenError,
    at: Timestamp,
    watch: &dyn HealthWatch,
) -> Result<HealthReport, HealthError> {
    let name = match error {
        OpenError::Home(_) => "home",
        OpenError::Key(_) => "installation_key",
        OpenError::Store(_) | OpenError::StorePlace(_) => "store",
        OpenError::Git(_) => "git",
        OpenError::Settings(_) => "settings",
    };
    let mut list = Checklist::new(true, watch);
    list.group(name, |list| list.failed(name, error.to_string()));
    for group in GROUPS.into_iter().filter(|group| *group != name) {
        list.group(group, |_| {});
    }
    report(list, at)
}

fn report(list: Checklist<'_>, made_at: Timestamp) -> Result<HealthReport, HealthError> {
    let checks = list.into_checks();
    let mut entropy = [0; 10];
    getrandom::fill(&mut entropy).map_err(|_| HealthError::Random)?;
    let is_failing = |outcome| outcome == HealthOutcome::Failed;
    Ok(HealthReport {
        schema: HealthSchema::V1,
        id: RunId::new(made_at, entropy),
        herma_version: VERSION.to_owned(),
        made_at,
        status: HealthStatus::of(&checks),
        failing: checks.iter().filter(|c| is_failing(c.outcome)).map(|c| c.name.clone()).collect(),
        checks,
        matrix_report_path: None,
        summary_digest: None,
    })
}

/// The control summary is made, and passes its own check.
fn control_summary(records: &Records<'_>, list: &mut Checklist<'_>) -> Option<Digest> {
    let name = "control_summary";
    let checked = summary_of(records).map_err(|e| e.to_string()).and_then(|summary| {
        let bytes = serde_json::to_vec(&summary).map_err(|e| e.to_string())?;
        let result = check_summary_of(records, &bytes).map_err(|e| e.to_string())?;
        Ok((summary, result))
    });
    match checked {
        Err(why) => list.failed(name, why),
        Ok((summary, result)) if result.ok => {
            list.passed(name, format!("{} checks of it hold", result.checked.len()));
            return digest(&summary);
        }
        Ok((_, result)) => {
            let errors = result.errors.iter().map(|error| format!("{}: {}", error.check, error.detail));
            list.failed(name, errors.collect::<Vec<_>>().join("; "));
        }
    }
    None
}
