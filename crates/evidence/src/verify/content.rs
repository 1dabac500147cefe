//! Checks of what the files say: artifacts, contract, decision, patch, paths, secrets.

use std::collections::{BTreeMap, BTreeSet};

use herma_core::blocker::Blocker;
use herma_core::contract::Target;
use herma_core::gate::Gate;
use herma_core::report::{Admission, ChangedFile, PathRule};
use herma_core::{Decision, EventType, RepoPath, Report, Status};
use serde_json::json;

use super::PathJudge;
use super::check::Good;
use super::pass::BundleContents;
use crate::{layout, redact};

/// The report lists exactly what is there, and names a reason for what is not.
pub(super) fn artifacts(seen: &BundleContents) -> Result<Good, String> {
    let report = seen.report()?;
    for (name, artifact) in &report.artifacts {
        if !layout::is_artifact(name) {
            return Err(format!("the report lists {name:?}, which is no file of a bundle"));
        }
        match seen.files.get(name) {
            None => return Err(format!("the report lists {name}, which is not there")),
            Some((digest, size)) if (*digest, *size) != (artifact.sha256, artifact.size) => {
                return Err(format!("{name} is not what the report lists"));
            }
            Some(_) => {}
        }
    }
    for name in layout::EXPECTED {
        let reason = report.not_applicable.get(name);
        match (report.artifacts.contains_key(name), reason) {
            (true, None) => {}
            (false, Some(reason)) if !reason.trim().is_empty() => {}
            (true, Some(_)) => return Err(format!("{name} is there and said not to apply")),
            (false, _) => return Err(format!("{name} is not there and the report gives no reason")),
        }
        if reason.is_none() != seen.files.contains_key(name) {
            return Err(format!("{name} is there and the report does not list it"));
        }
    }
    if let Some(transcript) = &seen.transcript {
        transcript.check(report)?;
    }
    for name in layout::OPTIONAL {
        if seen.files.contains_key(name) != report.artifacts.contains_key(name) {
            return Err(format!("{name} is there and the report does not list it"));
        }
    }
    Ok(Good::Passed(format!("{} artifacts", report.artifacts.len())))
}

/// The contract is the one that the report names.
pub(super) fn contract(seen: &BundleContents) -> Result<Good, String> {
    let report = seen.report()?;
    if let Some(absent) = absent(seen, report, layout::CONTRACT)? {
        return Ok(absent);
    }
    let contract = seen.contract()?;
    let digest = contract.digest().map_err(|e| e.to_string())?;
    if digest != report.contract_digest {
        return Err(format!("its digest is {digest}, the report says {}", report.contract_digest));
    }
    let terms = &contract.terms;
    if terms.id != report.contract_id || terms.stage != report.stage {
        return Err("its id or its stage is not what the report says".to_owned());
    }
    Ok(Good::Passed(digest.to_string()))
}

/// The decision is about this contract and engine, and the engine started only if it was eligible.
pub(super) fn decision(seen: &BundleContents) -> Result<Good, String> {
    let report = seen.report()?;
    if let Some(absent) = absent(seen, report, layout::DECISION)? {
        if report.engine_started {
            return Err("the engine started without a decision".to_owned());
        }
        return Ok(absent);
    }
    let decision = seen.decision()?;
    if decision.decision_id != format!("decision-{}", report.run_id) {
        return Err("it is of another run".to_owned());
    }
    if decision.contract_digest != report.contract_digest || decision.contract_id != report.contract_id {
        return Err("it is about another contract".to_owned());
    }
    if decision.allowed_mutation_scope != report.mutation_scope {
        return Err("its mutation scope is not what the report says".to_owned());
    }
    let eligible = decision.is_eligible();
    if eligible != decision.selected_engine.is_some() {
        return Err("it selects an engine that its gates do not, or the other way round".to_owned());
    }
    if decision.selected_engine.as_ref().is_some_and(|engine| *engine != report.engine) {
        return Err("it selects another engine than the report's".to_owned());
    }
    if seen.contract().is_ok_and(|contract| contract.terms.risk != decision.risk) {
        return Err("its risk is not that of the contract".to_owned());
    }
    if decision.approval_required != report.stage.needs_approval() {
        return Err("whether an approval is required does not follow from the stage".to_owned());
    }
    let blockers: BTreeSet<Blocker> = report.blockers.iter().map(|record| record.blocker).collect();
    let listed = |blocker| blockers.contains(&blocker);
    // Results that were not saved before an interruption are not in the report.
    let interrupted = listed(Blocker::Interrupted);
    if !interrupted {
        admissions(decision, report)?;
        target(seen, decision, report)?;
    }
    if let Some(missing) =
        decision.missing_gates.iter().find(|missing| !interrupted && !listed(missing.blocker))
    {
        return Err(format!(
            "the gate {} is missing, which is not among the blockers",
            missing.gate.as_str()
        ));
    }
    recorded_decision(seen, decision)?;
    if report.engine_started && !eligible {
        return Err("the engine started though it was not eligible".to_owned());
    }
    Ok(Good::Passed(if eligible { "eligible" } else { "not eligible" }.to_owned()))
}

/// The report's admissions agree with the decision.
fn admissions(decision: &Decision, report: &Report) -> Result<(), String> {
    let said = [
        ("engine", report.engine_admission),
        ("model", report.model_admission),
        ("target", report.target_admission),
    ];
    for (kind, said) in said {
        let seen = decision.admissions.iter().find(|seen| seen.kind == kind).map(|seen| seen.status);
        if seen.map_or(said == Admission::Admitted, |seen| seen != said) {
            return Err(format!("the report says of the admission of the {kind} what the decision does not"));
        }
    }
    Ok(())
}

/// Only a repository can be clean or not, and one whose gate passed was clean.
fn target(seen: &BundleContents, decision: &Decision, report: &Report) -> Result<(), String> {
    let fixture = seen.contract().is_ok_and(|contract| matches!(contract.terms.target, Target::Fixture(_)));
    let seen_of_it = [report.target_clean_start, report.target_clean_end, report.source_mutated];
    if fixture && report.parent_run.is_none() && seen_of_it != [None; 3] {
        return Err("the report says of a fixture whether it was clean or changed".to_owned());
    }
    let was_clean = decision.passed_gates.contains(&Gate::TargetClean);
    if was_clean && report.target_clean_start != Some(true) {
        return Err("`target_clean_start` is not what the gate found".to_owned());
    }
    Ok(())
}

/// The event agrees with the decision.
fn recorded_decision(seen: &BundleContents, decision: &Decision) -> Result<(), String> {
    let told = seen.events.as_ref().and_then(|events| events.data(EventType::EligibilityDecided));
    let Some(told) = told else { return Ok(()) };
    let gates: Vec<_> = decision.missing_gates.iter().map(|missing| missing.gate).collect();
    let said = json!({
        "decision_id": decision.decision_id,
        "selected_engine": decision.selected_engine,
        "missing_gates": gates,
    });
    let differs = |key: &&&str| told.get(**key) != said.get(**key);
    match ["decision_id", "selected_engine", "missing_gates"].iter().find(differs) {
        Some(key) => Err(format!("its {key} is not what the event eligibility.decided recorded")),
        None => Ok(()),
    }
}

/// The patch changes exactly what the report says, from and to exactly these blobs.
pub(super) fn patch(seen: &BundleContents) -> Result<Good, String> {
    let report = seen.report()?;
    let files = match (&seen.patch, seen.reason(layout::PATCH)?) {
        (Some(files), _) => files.as_ref().map_err(|e| format!("{}: {e}", layout::PATCH))?,
        (None, Some(reason)) if report.changed_files.is_empty() || report.status != Status::Pass => {
            return Ok(Good::NotApplicable(reason.to_owned()));
        }
        (None, _) => return Err(format!("{} is not there", layout::PATCH)),
    };
    let mut said: BTreeMap<&RepoPath, &ChangedFile> = BTreeMap::new();
    for file in &report.changed_files {
        if said.insert(&file.path, file).is_some() {
            return Err(format!("the report lists {} twice", file.path));
        }
    }
    for file in files {
        match said.remove(&file.path) {
            None => {
                return Err(format!("{} is in the patch and not in the report, or twice in it", file.path));
            }
            Some(other) if !file.agrees_with(other) => {
                return Err(format!("the patch does to {} another thing than the report says", file.path));
            }
            Some(_) => {}
        }
    }
    match said.keys().next() {
        Some(path) => Err(format!("{path} is in the report and not in the patch")),
        None => Ok(Good::Passed(format!("{} files", files.len()))),
    }
}

/// The changes break no rule of the contract but those that the report lists, and none at all in a pass.
pub(super) fn paths(seen: &BundleContents, judge: &dyn PathJudge) -> Result<Good, String> {
    let report = seen.report()?;
    if let Some(absent) = absent(seen, report, layout::CONTRACT)? {
        return Ok(absent);
    }
    let rules = |path: &RepoPath, rule: PathRule| (path.clone(), rule);
    let found = judge.judge(seen.contract()?, &report.changed_files)?;
    let mut found: BTreeSet<_> = found.iter().map(|v| rules(&v.path, v.rule)).collect();
    let listed: BTreeSet<_> = report.path_violations.iter().map(|v| rules(&v.path, v.rule)).collect();
    let held_secret = report.blockers.iter().any(|record| record.blocker == Blocker::SecretInOutput);
    let is_redacted = |path: &RepoPath| held_secret && redact::is_redacted(path.as_bytes());
    // A redacted name does not tell which rules it broke.
    found.retain(|(path, _)| !is_redacted(path));
    let judged = [report.allowed_paths_passed, report.forbidden_paths_passed];
    let ended_at_the_gates = !report.stage.starts_engine() && report.changed_files.is_empty();
    if judged == [None, None] && (report.status != Status::Pass || ended_at_the_gates) {
        // The run ended before paths were judged; then it lists none either.
        return match listed.first() {
            None => Ok(Good::NotApplicable("the run ended before paths were judged".to_owned())),
            Some((path, _)) => Err(format!("{path} is listed, though paths were not judged")),
        };
    }
    if let Some((path, rule)) = found.difference(&listed).next() {
        return Err(format!("{path} breaks the rule {rule:?}, which the report does not list"));
    }
    let changed: BTreeSet<_> = report.changed_files.iter().map(|file| &file.path).collect();
    // The admission of a target, or the run that asked for this one, may forbid more than the contract does, and a bundle does
    // not hold that.
    let narrowed = report.target_admission == Admission::Admitted || report.parent_run.is_some();
    let shows = |path: &RepoPath, rule: PathRule| {
        !narrowed
            && !is_redacted(path)
            && changed.contains(path)
            && matches!(rule, PathRule::NotAllowed | PathRule::Forbidden)
    };
    if let Some((path, rule)) = listed.difference(&found).find(|(path, rule)| shows(path, *rule)) {
        return Err(format!("the report lists {path} for the rule {rule:?}, which it does not break"));
    }
    let clean = judged == [Some(true), Some(true)];
    let broken = |rule| listed.iter().any(|(_, listed)| *listed == rule);
    let follows = (clean || !listed.is_empty())
        && (report.allowed_paths_passed != Some(true) || !broken(PathRule::NotAllowed))
        && (report.forbidden_paths_passed != Some(true) || !broken(PathRule::Forbidden));
    if !follows {
        return Err("the report's paths_passed do not follow from its path_violations".to_owned());
    }
    match listed.first() {
        None => Ok(Good::Passed("all changes are allowed".to_owned())),
        Some((path, _)) if report.status == Status::Pass => Err(format!("a pass, and {path} breaks a rule")),
        Some((path, _)) => Ok(Good::Passed(format!("{path} breaks a rule, as the report says"))),
    }
}

/// No file holds anything that looks like a secret.
pub(super) fn secrets(seen: &BundleContents) -> Result<Good, String> {
    match seen.findings.iter().find_map(|(name, findings)| Some((name, findings.first()?))) {
        Some((name, finding)) => {
            Err(format!("{name} holds something like a secret at byte {} ({})", finding.offset, finding.rule))
        }
        None => Ok(Good::Passed(format!("{} files scanned", seen.files.len()))),
    }
}

/// A missing file: the report's reason, which only a run without a pass can have.
pub(super) fn absent(seen: &BundleContents, report: &Report, name: &str) -> Result<Option<Good>, String> {
    if seen.files.contains_key(name) {
        return Ok(None);
    }
    let excused = [Blocker::ArtifactWriteFailure, Blocker::Interrupted];
    match seen.reason(name)? {
        Some(reason) if report.blockers.iter().any(|record| excused.contains(&record.blocker)) => {
            Ok(Some(Good::NotApplicable(reason.to_owned())))
        }
        Some(_) => Err(format!("{name} is not there, and nothing kept the run from writing it")),
        None => Err(format!("{name} is not there")),
    }
}
