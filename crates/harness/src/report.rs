//! The report of a run, assembled once from the results of its steps.

use std::collections::BTreeMap;

use herma_core::contract::Target;
use herma_core::report::{
    Admission, ApprovalStatus, ChildrenUse, Freshness, LandedIn, LandingRecord, NeverActivated, OutcomeState,
    PathRule, ReportSchema,
};
use herma_core::tool::ToolUse;
use herma_core::{Contract, Report, Stage, Verdict};
use herma_evidence::{Bundle, EventLog, layout};

use crate::installation::Installation;
use crate::order::Plan;
use crate::results::RunResults;

/// The rule for refs where a run lands.
const BRANCH_POLICY: &str =
    "one new branch below refs/heads/herma/ with one commit; no other ref is made, moved or deleted";

/// The input of a report.
pub(crate) struct ReportInput<'a> {
    pub(crate) installation: &'a Installation,
    pub(crate) plan: &'a Plan,
    pub(crate) contract: &'a Contract,
    pub(crate) bundle: &'a Bundle,
    pub(crate) events: &'a EventLog,
    pub(crate) results: &'a RunResults,
}

/// Assembles the report. Sealing fills in the artifacts, their freshness, and the time of the end.
pub(crate) fn assemble(input: &ReportInput<'_>, verdict: &Verdict) -> Report {
    let ReportInput { plan, contract, results, .. } = input;
    let terms = &contract.terms;
    let (gates, engine) = (results.gates.as_ref(), results.engine.as_ref());
    let (collected, verified) = (results.collected.as_ref(), results.verified.as_ref());
    let judged = results.checked.as_ref().map(|checked| &checked.violations);
    let broke = |rule: fn(PathRule) -> bool| judged.map(|v| !v.iter().any(|v| rule(v.rule)));
    let environment = results.environment.as_ref();
    let source_before = gates.and_then(|gates| gates.source_before.as_ref());
    let source_after = results.witnessed.as_ref().and_then(|witnessed| witnessed.source_after.as_ref());
    let outcome_due = results.landing.as_ref().and_then(|landing| landing.outcome_due);
    Report {
        schema: ReportSchema::V1,
        herma_version: plan.herma_version.clone(),
        run_id: plan.run_id,
        parent_run: plan.parent_run,
        contract_id: terms.id.clone(),
        contract_digest: plan.contract_digest,
        status: verdict.status(),
        engine: plan.engine.clone(),
        engine_version: plan.engine_version.clone(),
        engine_digest: results.engine_digest(),
        engine_started: results.engine_started(),
        engine_exit: engine.and_then(|engine| engine.exit.clone()),
        needs: gates.map(|gates| gates.needs.clone()).unwrap_or_default(),
        stage: terms.stage,
        mutation_scope: terms.mutation_scope(),
        destination: plan.destination,
        walls: gates.map(|gates| gates.walls.clone()).unwrap_or_default(),
        model_provider: terms.model.as_ref().map(|m| m.provider.clone()),
        model: terms.model.as_ref().map(|m| m.model.clone()),
        model_runtime_provider: runtime_provider(results),
        model_admission: model_admission(input),
        engine_admission: engine_admission(input),
        target_admission: target_admission(input),
        approval_status: approval_status(input),
        approval_id: results.approval.as_ref().and_then(|approval| approval.id),
        run_started_at: plan.started_at,
        run_finished_at: plan.started_at,
        baseline_commit: results.workspace.as_ref().and_then(|made| made.baseline_commit.clone()),
        result_tree: collected.map(|collected| collected.result_tree.clone()),
        result_commit: collected.map(|collected| collected.result_commit.clone()),
        changed_files: collected.map(|collected| collected.changed_files.clone()).unwrap_or_default(),
        changed_tests: collected.map(|collected| collected.changed_tests.clone()).unwrap_or_default(),
        changed_verification_files: collected
            .map(|collected| collected.changed_verification_files.clone())
            .unwrap_or_default(),
        ignored_files: collected.map(|collected| collected.ignored_files.clone()).unwrap_or_default(),
        allowed_paths_passed: broke(|rule| rule != PathRule::Forbidden),
        forbidden_paths_passed: broke(|rule| rule == PathRule::Forbidden),
        path_violations: judged.cloned().unwrap_or_default(),
        forbidden_actions_attempted: results.forbidden_actions(),
        required_events_passed: results.end.missing_event.is_none(),
        missing_content: results.workspace.as_ref().and_then(|made| made.missing_content.clone()),
        environment: environment.and_then(|found| found.used.clone()),
        verify_before: environment.map(|found| found.verify_before.clone()).unwrap_or_default(),
        verification: verified.map(|verified| verified.commands.clone()).unwrap_or_default(),
        verification_with_baseline_tests: verified
            .map(|verified| verified.with_baseline_tests.clone())
            .unwrap_or_default(),
        target_clean_start: source_before.map(|source| source.clean),
        target_clean_end: source_before.zip(source_after).map(|(before, after)| after.clean_since(before)),
        source_mutated: source_before.zip(source_after).map(|(before, after)| before != after),
        landing: landing(input),
        outcome: if outcome_due.is_some() { OutcomeState::Pending } else { OutcomeState::NotRequired },
        outcome_due,
        usage: results.models.as_ref().map(|models| models.usage).unwrap_or_default(),
        children: ChildrenUse::from_events(&input.events.events()),
        egress: results.egress.as_ref().map(|egress| egress.used.clone()),
        tools: results.tool_use().map(ToolUse::reconciled),
        blockers: verdict.blockers().to_vec(),
        not_applicable: not_applicable(input),
        artifacts: BTreeMap::new(),
        freshness: Freshness { oldest: plan.started_at, newest: plan.started_at, passed: false },
        trust_head: plan.trust_head,
        runtime_default_activation: NeverActivated,
    }
}

fn landing(input: &ReportInput<'_>) -> Option<LandingRecord> {
    let results = input.results.landing.as_ref()?;
    let landing = results.landing.as_ref()?;
    let made = input.contract.terms.stage == Stage::DisposableRepo;
    let disposal = match (made, input.plan.keep_workspace) {
        (false, _) => None,
        (true, false) => Some("the repository was made for this run and is removed with it"),
        (true, true) => Some("the repository was made for this run and is kept beside the bundle"),
    };
    Some(LandingRecord {
        repository: if made { LandedIn::Disposable } else { LandedIn::Target },
        reference: landing.reference.clone(),
        commit: landing.commit.clone(),
        base: landing.base.clone(),
        landed: results.landed,
        branch_policy: BRANCH_POLICY.to_owned(),
        disposal: disposal.map(str::to_owned),
    })
}

/// The provider behind the upstream that answered last.
fn runtime_provider(results: &RunResults) -> Option<String> {
    let upstream = results.models.as_ref()?.answered_by.as_ref()?;
    results.services.as_ref()?.providers.get(upstream).cloned()
}

fn model_admission(input: &ReportInput<'_>) -> Admission {
    let found = input.results.gates.as_ref().and_then(|gates| gates.model_admission);
    found.unwrap_or(match input.contract.terms.model {
        None => Admission::NotApplicable,
        Some(_) => Admission::MissingAdmission,
    })
}

fn engine_admission(input: &ReportInput<'_>) -> Admission {
    let found = input.results.gates.as_ref().and_then(|gates| gates.engine_admission);
    found.unwrap_or_else(|| match input.installation.engines.get(&input.plan.engine) {
        Some(engine) if engine.built_in() => Admission::BuiltIn,
        _ => Admission::MissingAdmission,
    })
}

fn target_admission(input: &ReportInput<'_>) -> Admission {
    let found = input.results.gates.as_ref().and_then(|gates| gates.target_admission);
    found.unwrap_or_else(|| match &input.contract.terms.target {
        Target::Fixture(_) => Admission::BuiltIn,
        Target::Repo { repo, .. } if repo.is_path() => Admission::NotApplicable,
        Target::Repo { .. } => Admission::MissingAdmission,
    })
}

fn approval_status(input: &ReportInput<'_>) -> ApprovalStatus {
    let needed = input.contract.terms.stage.needs_approval();
    let otherwise = if needed { ApprovalStatus::Missing } else { ApprovalStatus::NotRequired };
    input.results.approval.as_ref().map_or(otherwise, |approval| approval.status)
}

/// The files that this bundle does not have, each with its reason.
fn not_applicable(input: &ReportInput<'_>) -> BTreeMap<String, String> {
    let results = input.results;
    let confinement = results.probe.as_ref().and_then(|probe| probe.not_applicable.clone());
    let withheld = results.checked.as_ref().and_then(|checked| checked.secret_in_patch.as_ref());
    let patch =
        withheld.map(|_| "withheld: it holds a secret; paths and digests are in the report".to_owned());
    let test_log = results.verified.as_ref().and_then(|verified| verified.skipped.clone());
    let stated = [(layout::CONFINEMENT, confinement), (layout::PATCH, patch), (layout::TEST_LOG, test_log)];
    let mut reasons: BTreeMap<String, String> =
        stated.into_iter().filter_map(|(name, reason)| Some((name.to_owned(), reason?))).collect();
    let there = input.bundle.artifacts();
    for name in layout::EXPECTED {
        let is_missing = !there.contains_key(name) && layout::is_artifact(name) && name != layout::REPORT_MD;
        if is_missing && !reasons.contains_key(name) {
            reasons.insert(name.to_owned(), absence(input, name));
        }
    }
    reasons
}

fn absence(input: &ReportInput<'_>, name: &str) -> String {
    if let Some(failure) = input.results.write_failures().find(|failure| failure.contains(name)) {
        return failure.clone();
    }
    if name == layout::MODEL_CALLS && input.contract.terms.model.is_none() {
        return "the contract names no model".to_owned();
    }
    if input.results.gate_blockers().next().is_some() {
        return "a gate is missing, so the engine was not started".to_owned();
    }
    "the run ended before it was written".to_owned()
}
