//! The check that the report says what the events recorded as it happened.

use herma_core::report::ApprovalStatus;
use herma_core::{Blocker, EventType as E, Report};
use serde::Serialize;
use serde_json::{Map, Value};

use super::confinement::is_cut;
use super::events::EventsSeen;
use super::pass::BundleContents;

/// An event's value for a field of the report.
struct Claim<'a> {
    event: E,
    key: &'a str,
    field: &'a str,
    value: Value,
}

/// Every field of the report that an event repeats agrees with the event.
pub(super) fn recorded(seen: &BundleContents, report: &Report) -> Result<(), String> {
    let Some(events) = &seen.events else { return Ok(()) };
    if let Some(kind) = events.repeated() {
        return Err(format!("{kind} is there twice"));
    }
    let interrupted = report.blockers.iter().any(|record| record.blocker == Blocker::Interrupted);
    for Claim { event, key, field, value } in claims(report) {
        let Some(told) = events.data(event) else { continue };
        // Its data was too long, or held a secret.
        if told.contains_key("left_out_bytes") || told.contains_key("withheld") {
            continue;
        }
        let said = told.get(key).unwrap_or(&Value::Null);
        // Facts that were not saved before an interruption are empty in the report, and an earlier version of herma
        // may have recorded less.
        let lost = (interrupted || !told.contains_key(key)) && is_empty(&value);
        if *said != value && !lost && !is_cut(Some(said)) && !is_cut(Some(&value)) {
            return Err(format!("`{field}` is not what the event {event} recorded"));
        }
    }
    started(events, report)?;
    parent(events, report)?;
    approval(events, report, interrupted)?;
    secret(events, report)
}

fn claims(report: &Report) -> Vec<Claim<'_>> {
    let claim = |event, key, field, value| Claim { event, key, field, value };
    let forbidden =
        report.path_violations.iter().filter(|v| v.rule == herma_core::report::PathRule::Forbidden).count();
    let passed =
        report.verification.iter().all(|v| v.status == herma_core::report::VerificationStatus::Passed);
    vec![
        claim(E::RunStarted, "herma_version", "herma_version", value(&report.herma_version)),
        claim(E::RunStarted, "engine", "engine", value(&report.engine)),
        claim(E::RunStarted, "destination", "destination", value(&report.destination)),
        claim(E::RunStarted, "stage", "stage", value(&report.stage)),
        claim(E::ContractCreated, "contract_id", "contract_id", value(&report.contract_id)),
        claim(E::ContractCreated, "contract_digest", "contract_digest", value(&report.contract_digest)),
        claim(E::EligibilityDecided, "engine_digest", "engine_digest", value(&report.engine_digest)),
        claim(E::WorkspacePrepared, "baseline_commit", "baseline_commit", value(&report.baseline_commit)),
        claim(E::WorkspacePrepared, "missing_content", "missing_content", value(&report.missing_content)),
        claim(E::EngineStarted, "engine", "engine", value(&report.engine)),
        claim(E::EngineStarted, "version", "engine_version", value(&report.engine_version)),
        claim(E::PatchApplied, "result_tree", "result_tree", value(&report.result_tree)),
        claim(E::PatchApplied, "result_commit", "result_commit", value(&report.result_commit)),
        claim(E::PatchApplied, "changed", "changed_files", value(&report.changed_files.len())),
        claim(E::DiffChecked, "changed", "changed_files", value(&report.changed_files.len())),
        claim(E::DiffChecked, "changed_tests", "changed_tests", value(&report.changed_tests)),
        claim(
            E::DiffChecked,
            "changed_verification_files",
            "changed_verification_files",
            value(&report.changed_verification_files),
        ),
        claim(E::DiffChecked, "violations", "path_violations", value(&report.path_violations)),
        claim(E::DiffChecked, "forbidden", "path_violations", value(&forbidden)),
        claim(
            E::DiffChecked,
            "forbidden_actions",
            "forbidden_actions_attempted",
            value(&report.forbidden_actions_attempted),
        ),
        claim(E::VerificationCompleted, "commands", "verification", value(&report.verification)),
        claim(E::VerificationCompleted, "passed", "verification", value(&passed)),
        claim(
            E::VerificationCompleted,
            "with_baseline_tests",
            "verification_with_baseline_tests",
            value(&report.verification_with_baseline_tests),
        ),
    ]
}

fn value(field: &impl Serialize) -> Value {
    serde_json::to_value(field).unwrap_or(Value::Null)
}

/// Nothing, none, an empty list, or a count of nothing.
fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Number(number) => number.as_u64() == Some(0),
        // The sum of no verification.
        Value::Bool(passed) => *passed,
        Value::String(_) | Value::Object(_) => false,
    }
}

fn started(events: &EventsSeen, report: &Report) -> Result<(), String> {
    let told = events.data(E::EngineStarted).is_some();
    // An event may be missing where the report says so.
    if told && !report.engine_started || !told && report.engine_started && report.required_events_passed {
        return Err("`engine_started` is not what the events recorded".to_owned());
    }
    if report.run_id.started_at_ms() != u64::try_from(report.run_started_at.as_millisecond()).ok() {
        return Err("`run_started_at` is not the time in the run's name".to_owned());
    }
    Ok(())
}

/// A child names its parent at its start, a resumed run its predecessor when its workspace is prepared.
fn parent(events: &EventsSeen, report: &Report) -> Result<(), String> {
    let named = |data: Option<&Map<String, Value>>| data.and_then(|data| data.get("parent_run")).cloned();
    let prepared = events.data(E::WorkspacePrepared);
    let resumed = prepared.and_then(|data| data.get("resumed")?.get("run")).cloned();
    let told = named(events.data(E::RunStarted)).or(resumed);
    let said = value(&report.parent_run);
    match told {
        Some(told) if told == said => Ok(()),
        // Before its workspace is prepared no event names the predecessor.
        None if said.is_null() || prepared.is_none() => Ok(()),
        _ => Err("`parent_run` is not what the events recorded".to_owned()),
    }
}

fn approval(events: &EventsSeen, report: &Report, interrupted: bool) -> Result<(), String> {
    let said = value(&report.approval_id);
    for kind in [E::ApprovalGranted, E::ApprovalConsumed] {
        let told = events.data(kind).map(|data| data.get("approval_id").cloned().unwrap_or(Value::Null));
        if told.is_some_and(|told| told != said && !(interrupted && said.is_null())) {
            return Err(format!("`approval_id` is not what the event {kind} recorded"));
        }
    }
    let consumed = events.data(E::ApprovalConsumed).is_some();
    let says = report.approval_status == ApprovalStatus::Consumed;
    let missed = says && !report.required_events_passed;
    if consumed != says && !interrupted && !missed {
        return Err("`approval_status` is not what the events recorded".to_owned());
    }
    Ok(())
}

fn secret(events: &EventsSeen, report: &Report) -> Result<(), String> {
    let told = events.data(E::DiffChecked).and_then(|data| data.get("secret")).and_then(Value::as_bool);
    let listed = report.blockers.iter().any(|record| record.blocker == Blocker::SecretInOutput);
    match told {
        Some(true) if !listed => {
            Err("the events tell of a secret, which is not among the blockers".to_owned())
        }
        _ => Ok(()),
    }
}
