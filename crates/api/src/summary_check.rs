//! Checks a control summary that somebody presents: its rules, and every claim and reference against the records.

mod rules;

use std::collections::BTreeSet;

use herma_core::reference::Reference;
use herma_core::store::StoreError;
use herma_harness::Installation;
use serde_json::Value;

use crate::output::{
    Field, HealthNow, LadderRow, LadderStatus, SummaryCheckOutput, SummaryCheckSchema, SummaryError,
    SummaryOutput,
};
use crate::records::Records;
use crate::summary::summary_of;

/// The largest summary that is read.
pub const MAX_SUMMARY_BYTES: u64 = 16 << 20;

/// The checks, in their order.
const CHECKS: [&str; 11] = [
    "json",
    "fields",
    "default_activation",
    "promotion",
    "forbidden_actions",
    "target_mutation",
    "secrets",
    "references",
    "approval_provenance",
    "admissions",
    "claims",
];

/// The errors so far.
struct Errors(Vec<SummaryError>);

impl Errors {
    fn add(&mut self, check: &str, detail: impl Into<String>) {
        self.0.push(SummaryError { check: check.to_owned(), detail: detail.into() });
    }
}

/// Checks a control summary against the records of this installation as they are now.
pub fn check_summary(installation: &Installation, bytes: &[u8]) -> Result<SummaryCheckOutput, StoreError> {
    check_summary_of(&Records::of(installation), bytes)
}

/// The same for records that were verified already.
pub(crate) fn check_summary_of(
    records: &Records<'_>,
    bytes: &[u8],
) -> Result<SummaryCheckOutput, StoreError> {
    let mut errors = Errors(Vec::new());
    let Ok(value) = serde_json::from_slice::<Value>(bytes) else {
        errors.add("json", "it is not JSON");
        return Ok(result(&CHECKS[..1], errors));
    };
    rules::check(bytes, &value, &mut errors);
    let references = check_references(records, &value, &mut errors);
    match serde_json::from_slice::<SummaryOutput>(bytes) {
        Err(why) => errors.add("fields", format!("it is not a control summary: {why}")),
        Ok(claimed) => {
            let now = summary_of(records)?;
            check_approval(&claimed, &now, &mut errors);
            check_claims(records, &claimed, &now, &mut errors);
        }
    }
    for reference in references.iter().filter(|reference| matches!(reference, Reference::Admission(_))) {
        if let Err(why) = records.check(reference) {
            errors.add("admissions", format!("{reference} does not count now: {why}"));
        }
    }
    Ok(result(&CHECKS, errors))
}

fn result(checked: &[&str], Errors(errors): Errors) -> SummaryCheckOutput {
    SummaryCheckOutput {
        schema: SummaryCheckSchema::V1,
        ok: errors.is_empty(),
        checked: checked.iter().map(|check| (*check).to_owned()).collect(),
        errors,
    }
}

/// Every reference in it exists and verifies, and every field for a reference holds one.
fn check_references(records: &Records<'_>, value: &Value, errors: &mut Errors) -> BTreeSet<Reference> {
    let mut found = BTreeSet::new();
    rules::texts(value, &mut |key, text| {
        // The patterns of a contract are no references.
        let must_be = (key.ends_with("_path") || key.ends_with("_paths")) && key != "allowed_paths";
        if !must_be && !Reference::looks_like_one(text) {
            return;
        }
        match text.parse::<Reference>() {
            Ok(reference) => drop(found.insert(reference)),
            Err(why) => errors.add("references", why),
        }
    });
    for reference in &found {
        // Admissions have a check of their own.
        if matches!(reference, Reference::Admission(_)) {
            continue;
        }
        if let Err(why) = records.check(reference) {
            errors.add("references", format!("{reference} does not verify: {why}"));
        }
    }
    found
}

/// A grant is claimed only with its signature, and the records say the same of it now.
fn check_approval(claimed: &SummaryOutput, now: &SummaryOutput, errors: &mut Errors) {
    let (said, is) = (&claimed.approval, &now.approval);
    let name = "approval_provenance";
    if !said.approval_required {
        errors.add(name, "it says that no approval is required");
    }
    let claims = said.approval_granted || said.execution_allowed || said.approval_consumed;
    if !claims {
        return;
    }
    let has_provenance = said.approval_path.is_some() && said.approver.is_some();
    let names_both = said.provenance_paths.iter().any(|path| matches!(path, Reference::Approver(_)))
        && said.provenance_paths.iter().any(|path| Some(path) == said.approval_path.as_ref());
    if said.approval_granted && !(has_provenance && names_both) {
        errors.add(name, "a grant is claimed without the approval and the approver behind it");
    }
    if said.approval_id != is.approval_id || said.approver != is.approver {
        errors.add(name, "the records name another approval, or another approver, now");
    }
    let flags = |of: &crate::output::ApprovalSummary| {
        (of.approval_granted, of.execution_allowed, of.execution_scope, of.approval_consumed)
    };
    if flags(said) != flags(is) {
        errors.add(name, format!("the records say otherwise now: {}", is.reason));
    }
}

/// Its claims on stages, health, the target and runs are at most those of the records now.
fn check_claims(records: &Records<'_>, claimed: &SummaryOutput, now: &SummaryOutput, errors: &mut Errors) {
    let name = "claims";
    let state = |rows: &[LadderRow], wanted: &LadderRow| {
        let row = rows.iter().find(|row| (&row.engine, row.stage) == (&wanted.engine, wanted.stage));
        row.map(|row| row.status)
    };
    for row in &claimed.proof_ladder {
        let holds = matches!(row.status, LadderStatus::Proven | LadderStatus::BuiltIn);
        if holds && state(&now.proof_ladder, row) != Some(row.status) {
            errors.add(name, format!("stage {} of {} is not proven now", row.stage, row.engine));
        }
        let proof = Reference::Proof(row.engine.clone(), row.stage);
        if row.status == LadderStatus::Proven && !row.evidence_paths.contains(&proof) {
            errors.add(name, format!("stage {} of {} is claimed without its proof", row.stage, row.engine));
        }
    }
    for row in &now.proof_ladder {
        if state(&claimed.proof_ladder, row).is_none() {
            errors.add(name, format!("stage {} of {} is left out", row.stage, row.engine));
        }
    }
    if claimed.health.status == HealthNow::Green && now.health.status != HealthNow::Green {
        errors.add(name, "health is not green now");
    }
    differs(&claimed.candidate_default, &now.candidate_default, "candidate_default", errors);
    differs(&claimed.repeatability, &now.repeatability, "repeatability", errors);
    differs(&claimed.target_read_only, &now.target_read_only, "target_read_only", errors);
    differs(&claimed.governed_execution, &now.governed_execution, "governed_execution", errors);
    differs(
        &claimed.target_repository_mutation,
        &now.target_repository_mutation,
        "target_repository_mutation",
        errors,
    );
    for landed in &claimed.landed_branches {
        if !now.landed_branches.contains(landed) && records.check(&landed.report_path).is_ok() {
            errors.add(name, format!("{} does not say this of a landed branch now", landed.report_path));
        }
    }
}

/// A claimed value is that of the records.
fn differs<T: PartialEq>(claimed: &Field<T>, now: &Field<T>, field: &str, errors: &mut Errors) {
    if claimed.known().is_some() && claimed.known() != now.known() {
        errors.add("claims", format!("`{field}` is not what the records say now"));
    }
}
