//! Closes a run: verdict, report, attestation, store. Every run ends here, also one that an earlier process left.

use std::path::PathBuf;

use herma_core::event::{Ended, RunCompleted, Source, first_missing, required};
use herma_core::report::{
    Admission, ApprovalStatus, ChildrenUse, Freshness, LandedIn, LandingRecord, NeverActivated, OutcomeState,
    PathRule, ReportSchema,
};
use herma_core::store::Store as _;
use herma_core::tool::ToolUse;
use herma_core::{Contract, Event, EventType, Report, Stage, Status, Step, Verdict};
use herma_evidence::{Attestation, Bundle, EventLog, Trace, Trust, attest, layout, seal};
use herma_git::SourceRepo;
use herma_trust::refusal;

use crate::children;
use crate::error::OrderError;
use crate::facts::Facts;
use crate::installation::Installation;
use crate::land;
use crate::models;
use crate::order::Plan;
use crate::outcome;
use crate::run::{Run, joined};
use crate::session;

/// What may be made and moved where a run lands.
const BRANCH_POLICY: &str =
    "one new branch below refs/heads/herma/ with one commit; no other ref is made, moved or deleted";

/// What the report of a run is drawn from.
pub(crate) struct Closing<'a> {
    pub(crate) installation: &'a Installation,
    pub(crate) plan: &'a Plan,
    pub(crate) contract: &'a Contract,
    pub(crate) bundle: &'a Bundle,
    pub(crate) events: &'a EventLog,
    pub(crate) trace: &'a Trace,
    pub(crate) facts: &'a mut Facts,
    /// The repository that the run lands in, where its stage lands in one.
    pub(crate) landing_place: Option<SourceRepo>,
}

/// Closes a run of this process.
pub(crate) fn close(mut run: Run<'_>) -> Result<(Report, PathBuf), OrderError> {
    let written = run.step(Step::Report);
    if let Err(stop) = written {
        // The last step of the trace may not fit on a full disk; the report still says that it was taken.
        run.installation.home.release_reserve();
        run.facts.write_failures.push(OrderError::from(stop).to_string());
    }
    let report = seal_report(&mut run)?;
    run.step(Step::Attest)?;
    let (report, attestation) = sign_verified(&mut run, report)?;
    attestation.publish(&run.bundle)?;
    run.step(Step::Close)?;
    let Run { installation, dirs, active, plan, events, removals, facts, order, .. } = run;
    outcome::remember(&installation.home, &report, &facts).map_err(OrderError::home)?;
    std::thread::scope(|scope| {
        let stored = scope.spawn(|| {
            models::index(&installation.store, &dirs.bundle(), &report)?;
            installation.store.finish(&report, &events.events())
        });
        for removal in removals {
            let _ = removal.join();
        }
        if let Some(engine) = installation.engines.get(&plan.engine) {
            session::keep(&dirs, engine, order, &facts);
        }
        let cleared = dirs.clear(plan.keep_workspace && was_used(&events.events()));
        joined(stored)??;
        cleared.and_then(|()| dirs.forget_plan()).map_err(OrderError::home)
    })?;
    active.done().map_err(OrderError::home)?;
    Ok((report, dirs.bundle()))
}

/// Whether the workspace was taken into use: otherwise it is a copy of the target that nobody has seen.
pub(crate) fn was_used(events: &[Event]) -> bool {
    events.iter().any(|event| event.kind == EventType::WorkspacePrepared)
}

/// Draws and writes the report; on a full disk a second time, with the reserve given back.
fn seal_report(run: &mut Run<'_>) -> Result<Report, OrderError> {
    let landing_place = run.landing_place().map(|(place, _)| place.clone());
    let mut closing = Closing {
        landing_place,
        installation: run.installation,
        plan: &run.plan,
        contract: run.contract,
        bundle: &run.bundle,
        events: &run.events,
        trace: &run.trace,
        facts: &mut run.facts,
    };
    match closing.seal() {
        Err(OrderError::Write(failure)) => {
            run.installation.home.release_reserve();
            closing.facts.write_failures.push(failure);
            closing.seal()
        }
        sealed => sealed,
    }
}

/// Signs the bundle. A pass is verified as `herma verify` does it before anybody can read that it is one; what would be
/// refused is closed once more, as not a pass.
fn sign_verified(run: &mut Run<'_>, report: Report) -> Result<(Report, Attestation), OrderError> {
    let key = &run.installation.key;
    let signed = attest::sign(&run.bundle, key, &report)?;
    if report.status != Status::Pass {
        return Ok((report, signed));
    }
    let trust = Trust { keys: vec![key.public()], approvers: Vec::new() };
    let Some(why) = refusal(run.bundle.dir(), &signed, &trust) else { return Ok((report, signed)) };
    run.facts.evidence_refused = Some(why);
    let report = seal_report(run)?;
    let signed = attest::sign(&run.bundle, key, &report)?;
    Ok((report, signed))
}

/// The first event before the last one that a run with this end must have left and has not.
pub(crate) fn missing_before_the_end(
    stage: Stage,
    status: Status,
    facts: &Facts,
    events: &[Event],
) -> Option<EventType> {
    let (engine_started, confined) = (facts.engine_started, facts.confined);
    let mut wanted = required(Ended { stage, status, engine_started, confined });
    wanted.retain(|kind| *kind != EventType::RunCompleted);
    first_missing(&wanted, events)
}

impl Closing<'_> {
    /// Draws the verdict, writes the last event and the report.
    pub(crate) fn seal(&mut self) -> Result<Report, OrderError> {
        self.unplace();
        children::tell_of_lost(self.installation, self.events)?;
        let events = self.events.events();
        self.facts.missing_event = self.missing_event(&events);
        let verdict = self.facts.judge(self.contract);
        // A run that is not a pass leaves nothing.
        if self.facts.landed
            && verdict.status() != Status::Pass
            && let Some(place) = &self.landing_place
        {
            land::take_back(place, self.facts);
        }
        let left_out = self.events.agent_events_left_out();
        let completed = RunCompleted::new(verdict.status(), verdict.blockers(), left_out);
        if !Self::is_recorded(&events, &completed) {
            self.events.record(Source::Harness, completed)?;
        }
        self.events.finish()?;
        self.trace.finish()?;
        Ok(seal(self.bundle, &self.report(&verdict), &self.events.redactor())?)
    }

    /// What git or the system said of an error may name where the target lies; only its admission may.
    fn unplace(&mut self) {
        let places = self.places();
        let facts = &mut *self.facts;
        let records =
            facts.gate_blockers.iter_mut().chain(&mut facts.landing_refused).map(|record| &mut record.detail);
        for text in records.chain(&mut facts.interrupted).chain(&mut facts.write_failures) {
            *text = places.iter().fold(std::mem::take(text), |text, place| text.replace(place, "the target"));
        }
    }

    /// Where the target lies: its work tree, and the git directory that herma's own one reads from, which for a
    /// linked work tree is somewhere else.
    fn places(&self) -> Vec<String> {
        let own = self.installation.home.run(self.plan.run_id).git();
        let read_from = std::fs::read_to_string(own.join("objects/info/alternates")).unwrap_or_default();
        let git_dirs = read_from.lines().filter_map(|objects| objects.strip_suffix("/objects"));
        let work_tree = self.facts.target_dir.iter().map(|dir| dir.to_string_lossy().into_owned());
        work_tree.chain(git_dirs.map(str::to_owned)).filter(|place| place.len() > 1).collect()
    }

    /// Whether the last event already tells this verdict: then closing is tried a second time.
    fn is_recorded(events: &[Event], completed: &RunCompleted) -> bool {
        events.last().is_some_and(|last| {
            last.kind == EventType::RunCompleted
                && RunCompleted::from_data(&last.data).as_ref() == Ok(completed)
        })
    }

    /// The first event that a run with these facts must have left and has not.
    fn missing_event(&self, events: &[Event]) -> Option<EventType> {
        let facts = &self.facts;
        let would_pass = facts.judge(self.contract).status() == Status::Pass || facts.missing_event.is_some();
        let status = if would_pass { Status::Pass } else { Status::Fail };
        missing_before_the_end(self.contract.terms.stage, status, facts, events)
    }

    fn report(&self, verdict: &Verdict) -> Report {
        let (plan, facts, terms) = (self.plan, &self.facts, &self.contract.terms);
        let judged = facts.violations.as_ref();
        let broke = |rule: fn(PathRule) -> bool| judged.map(|v| !v.iter().any(|v| rule(v.rule)));
        let mut not_applicable = facts.not_applicable.clone();
        for (name, reason) in self.absences() {
            not_applicable.entry(name).or_insert(reason);
        }
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
            engine_digest: facts.engine_digest,
            engine_started: facts.engine_started,
            engine_exit: facts.engine_exit.clone(),
            needs: facts.needs.clone(),
            stage: terms.stage,
            mutation_scope: terms.mutation_scope(),
            destination: plan.destination,
            walls: facts.walls.clone(),
            model_provider: terms.model.as_ref().map(|m| m.provider.clone()),
            model: terms.model.as_ref().map(|m| m.model.clone()),
            model_runtime_provider: self.runtime_provider(),
            model_admission: facts.model_admission.unwrap_or(match terms.model {
                None => Admission::NotApplicable,
                Some(_) => Admission::MissingAdmission,
            }),
            engine_admission: facts.engine_admission.unwrap_or_else(|| self.engine_admission()),
            target_admission: facts.target_admission.unwrap_or_else(|| self.target_admission()),
            approval_status: facts.approval_status.unwrap_or(if terms.stage.needs_approval() {
                ApprovalStatus::Missing
            } else {
                ApprovalStatus::NotRequired
            }),
            approval_id: facts.approval_id,
            run_started_at: plan.started_at,
            run_finished_at: plan.started_at,
            baseline_commit: facts.baseline_commit.clone(),
            result_tree: facts.result_tree.clone(),
            result_commit: facts.result_commit.clone(),
            changed_files: facts.changed_files.clone(),
            changed_tests: facts.changed_tests.clone(),
            changed_verification_files: facts.changed_verification_files.clone(),
            ignored_files: facts.ignored_files.clone(),
            allowed_paths_passed: broke(|rule| rule != PathRule::Forbidden),
            forbidden_paths_passed: broke(|rule| rule == PathRule::Forbidden),
            path_violations: judged.cloned().unwrap_or_default(),
            forbidden_actions_attempted: facts.actions.clone(),
            required_events_passed: facts.missing_event.is_none(),
            verification: facts.verification.clone(),
            verification_with_baseline_tests: facts.verification_with_baseline_tests.clone(),
            target_clean_start: facts.source_before.as_ref().map(|s| s.clean),
            target_clean_end: facts.source_after.as_ref().map(|s| s.clean),
            source_mutated: facts
                .source_before
                .as_ref()
                .zip(facts.source_after.as_ref())
                .map(|(before, after)| before != after),
            landing: self.landing(),
            outcome: match facts.outcome_due {
                Some(_) => OutcomeState::Pending,
                None => OutcomeState::NotRequired,
            },
            outcome_due: facts.outcome_due,
            usage: facts.usage,
            children: ChildrenUse::from_events(&self.events.events()),
            egress: facts.egress.clone(),
            tools: facts.tools.clone().map(ToolUse::reconciled),
            blockers: verdict.blockers().to_vec(),
            not_applicable,
            artifacts: std::collections::BTreeMap::new(),
            freshness: Freshness { oldest: plan.started_at, newest: plan.started_at, passed: false },
            trust_head: plan.trust_head,
            runtime_default_activation: NeverActivated,
        }
    }

    fn landing(&self) -> Option<LandingRecord> {
        let (facts, stage) = (&self.facts, self.contract.terms.stage);
        let landing = facts.landing.as_ref()?;
        let made = stage == Stage::DisposableRepo;
        let disposal = match (made, self.plan.keep_workspace) {
            (false, _) => None,
            (true, false) => Some("the repository was made for this run and is removed with it"),
            (true, true) => Some("the repository was made for this run and is kept beside the bundle"),
        };
        Some(LandingRecord {
            repository: if made { LandedIn::Disposable } else { LandedIn::Target },
            reference: landing.reference.clone(),
            commit: landing.commit.clone(),
            base: landing.base.clone(),
            landed: facts.landed,
            branch_policy: BRANCH_POLICY.to_owned(),
            disposal: disposal.map(str::to_owned),
        })
    }

    /// Who answered at run time: what speaks at the upstream that answered last.
    fn runtime_provider(&self) -> Option<String> {
        self.facts.answered_by.as_ref().and_then(|upstream| self.facts.providers.get(upstream)).cloned()
    }

    fn engine_admission(&self) -> Admission {
        match self.installation.engines.get(&self.plan.engine) {
            Some(engine) if engine.built_in() => Admission::BuiltIn,
            _ => Admission::MissingAdmission,
        }
    }

    fn target_admission(&self) -> Admission {
        use herma_core::contract::Target;
        match &self.contract.terms.target {
            Target::Fixture(_) => Admission::BuiltIn,
            Target::Repo { repo, .. } if repo.is_path() => Admission::NotApplicable,
            Target::Repo { .. } => Admission::MissingAdmission,
        }
    }

    /// The files that this bundle does not have, each with its reason.
    fn absences(&self) -> Vec<(String, String)> {
        let there = self.bundle.artifacts();
        let reason = |name: &str| {
            if let Some(failure) = self.facts.write_failures.iter().find(|f| f.contains(name)) {
                return failure.clone();
            }
            match name {
                layout::MODEL_CALLS if self.contract.terms.model.is_none() => {
                    "the contract names no model".to_owned()
                }
                _ if !self.facts.gate_blockers.is_empty() => {
                    "a gate is missing, so the engine was not started".to_owned()
                }
                _ => "the run ended before it was written".to_owned(),
            }
        };
        layout::EXPECTED
            .iter()
            .filter(|name| {
                !there.contains_key(**name) && layout::is_artifact(name) && **name != layout::REPORT_MD
            })
            .map(|name| ((*name).to_owned(), reason(name)))
            .collect()
    }
}
