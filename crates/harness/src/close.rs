//! Closes a run: verdict, report, attestation, store. Every run ends here, also one that a dead process left.

use std::path::PathBuf;

use herma_core::event::{RunCompleted, Source};
use herma_core::{Contract, Event, EventType, Report, Status, Step};
use herma_evidence::{Attestation, Bundle, EventLog, Trace, Trust, attest, seal};
use herma_git::SourceRepo;
use herma_trust::refusal;

use crate::children;
use crate::context::{RunContext, joined};
use crate::error::OrderError;
use crate::installation::Installation;
use crate::order::Plan;
use crate::report::{ReportInput, assemble};
use crate::results::RunResults;
use crate::run_router;
use crate::session;
use crate::unsaved_work::has_unsaved_work;
use herma_home::ActiveRun;

/// A run that is being closed.
pub(crate) struct Closing<'a> {
    pub(crate) installation: &'a Installation,
    pub(crate) plan: &'a Plan,
    pub(crate) contract: &'a Contract,
    pub(crate) bundle: &'a Bundle,
    pub(crate) events: &'a EventLog,
    pub(crate) trace: &'a Trace,
    pub(crate) results: &'a mut RunResults,
    /// The repository that the run lands in, where its stage lands in one.
    pub(crate) landing_place: Option<SourceRepo>,
}

/// Closes a run of this process.
pub(crate) fn close(
    ctx: &RunContext<'_>,
    active: ActiveRun,
    mut results: RunResults,
    landing_place: Option<SourceRepo>,
) -> Result<(Report, PathBuf), OrderError> {
    let installation = ctx.installation;
    if let Err(stop) = ctx.step(Step::Report) {
        // The last step of the trace may not fit on a full disk; the report still says that it was taken.
        installation.home.release_reserve();
        results.end.write_failures.push(OrderError::from(stop).to_string());
    }
    let mut closing = Closing {
        installation,
        plan: &ctx.plan,
        contract: ctx.contract,
        bundle: &ctx.bundle,
        events: &ctx.events,
        trace: &ctx.trace,
        results: &mut results,
        landing_place,
    };
    let report = closing.seal_with_reserve()?;
    ctx.step(Step::Attest)?;
    let (report, attestation) = closing.sign_verified(report)?;
    attestation.publish(&ctx.bundle)?;
    ctx.step(Step::Close)?;
    remember_landing(installation, &report, &results)?;
    std::thread::scope(|scope| {
        let stored = scope.spawn(|| {
            run_router::index(&installation.store, &ctx.dirs.bundle(), &report)?;
            installation.event_writer.finish(report.run_id);
            let events = ctx.events.events();
            installation.store.call(|store| store.finish_run(&report, &events))
        });
        ctx.join_removals();
        let session = results.engine.as_ref().and_then(|engine| engine.session.as_ref());
        let keeps_work = session::keeps_workspace(&ctx.dirs);
        if let Some(engine) =
            installation.engines.get(&ctx.plan.engine).filter(|_| keeps_work || session.is_some())
        {
            session::keep(&ctx.dirs, engine, &ctx.plan, session, keeps_work);
        }
        let kept = ctx.plan.keep_workspace && was_used(&ctx.events.events());
        let cleared = ctx.dirs.clear(kept || keeps_work, kept);
        joined(stored)??;
        cleared.and_then(|()| ctx.dirs.forget_plan()).map_err(OrderError::home)
    })?;
    active.done().map_err(OrderError::home)?;
    Ok((report, ctx.dirs.bundle()))
}

/// Whether the workspace was taken into use: otherwise it is a copy of the target that no agent has seen.
pub(crate) fn was_used(events: &[Event]) -> bool {
    events.iter().any(|event| event.kind == EventType::WorkspacePrepared)
}

/// Remembers how to take back what landed, until the operator has given the outcome.
pub(crate) fn remember_landing(
    installation: &Installation,
    report: &Report,
    results: &RunResults,
) -> Result<(), OrderError> {
    let landing = results.landing.as_ref().and_then(|results| results.landing.as_ref());
    let target_dir = results.gates.as_ref().and_then(|gates| gates.target_dir.as_deref());
    let (Some(landing), Some(target_dir)) = (landing, target_dir) else { return Ok(()) };
    herma_trust::remember_landing(&installation.home, report, landing, target_dir).map_err(OrderError::home)
}

impl Closing<'_> {
    /// Seals the report; on a full disk a second time, with the reserve given back.
    fn seal_with_reserve(&mut self) -> Result<Report, OrderError> {
        match self.seal() {
            Err(OrderError::Write(failure)) => {
                self.installation.home.release_reserve();
                self.results.end.write_failures.push(failure.to_string());
                self.seal()
            }
            sealed => sealed,
        }
    }

    /// Signs the bundle. A pass is verified as `herma verify` does it before it is published; a bundle that would be refused is
    /// closed once more, as not a pass.
    fn sign_verified(&mut self, report: Report) -> Result<(Report, Attestation), OrderError> {
        let key = &self.installation.key;
        let signed = attest::sign(self.bundle, key, &report)?;
        if report.status != Status::Pass {
            return Ok((report, signed));
        }
        let trust = Trust { keys: vec![key.public()], approvers: Vec::new() };
        let Some(why) = refusal(self.bundle.dir(), &signed, &trust) else { return Ok((report, signed)) };
        self.results.end.evidence_refused = Some(why);
        let report = self.seal_with_reserve()?;
        let signed = attest::sign(self.bundle, key, &report)?;
        Ok((report, signed))
    }

    /// Draws the verdict, writes the last event and the report.
    pub(crate) fn seal(&mut self) -> Result<Report, OrderError> {
        self.strip_target_paths();
        children::tell_of_lost(self.installation, self.events)?;
        self.keep_unsaved_work();
        let events = self.events.events();
        self.results.end.missing_event = self.missing_event(&events);
        let verdict = self.results.judge(self.contract);
        // A run that is not a pass leaves nothing.
        if verdict.status() != Status::Pass
            && let Some(place) = &self.landing_place
            && let Some(landing) = self.results.landing.as_mut().filter(|landing| landing.landed)
        {
            landing.take_back(place);
        }
        let left_out = self.events.agent_events_left_out();
        let completed = RunCompleted::new(verdict.status(), verdict.blockers(), left_out);
        if !is_recorded(&events, &completed) {
            self.events.record(Source::Harness, completed)?;
        }
        self.events.finish()?;
        self.trace.finish()?;
        let input = ReportInput {
            installation: self.installation,
            plan: self.plan,
            contract: self.contract,
            bundle: self.bundle,
            events: self.events,
            results: self.results,
        };
        Ok(seal(self.bundle, &assemble(&input, &verdict), &self.events.redactor())?)
    }

    /// An interrupted run keeps work that no patch has, and its message says how to continue.
    fn keep_unsaved_work(&mut self) {
        if self.results.end.interrupted.is_none() || self.results.end.keeps_workspace.is_some() {
            return;
        }
        let dirs = self.installation.home.run(self.plan.run_id);
        let events = self.events.events();
        let keeps =
            has_unsaved_work(self.installation, (self.plan, &dirs), (self.bundle, self.results), &events);
        // Before the attestation: a process that closes the run after a kill must find it.
        let keeps = keeps && session::keep_workspace(&dirs, self.plan).is_ok();
        let run = self.plan.run_id.short();
        self.results.end.keeps_workspace = Some(keeps);
        self.results.end.resume_with = keeps.then(|| {
            format!(
                "Its workspace is kept: `herma resume {run} --from-workspace` continues from it, `herma discard {run}` deletes it."
            )
        });
    }

    /// Replaces the target's paths in the errors of git and the system: only the admission may name them.
    fn strip_target_paths(&mut self) {
        let paths = self.target_paths();
        for text in self.results.texts_mut() {
            *text = paths.iter().fold(std::mem::take(text), |text, path| text.replace(path, "the target"));
        }
    }

    /// The target's work tree, and the git directory that herma's own one reads from, which for a linked work tree is elsewhere.
    fn target_paths(&self) -> Vec<String> {
        let own = self.installation.home.run(self.plan.run_id).git();
        let read_from = std::fs::read_to_string(own.join("objects/info/alternates")).unwrap_or_default();
        let git_dirs = read_from.lines().filter_map(|objects| objects.strip_suffix("/objects"));
        let target_dir = self.results.gates.as_ref().and_then(|gates| gates.target_dir.as_ref());
        let work_tree = target_dir.map(|dir| dir.to_string_lossy().into_owned());
        work_tree.into_iter().chain(git_dirs.map(str::to_owned)).filter(|path| path.len() > 1).collect()
    }

    /// The first event that a run with these results must have left and has not.
    fn missing_event(&self, events: &[Event]) -> Option<EventType> {
        let passes = self.results.judge(self.contract).status() == Status::Pass;
        let would_pass = passes || self.results.end.missing_event.is_some();
        let status = if would_pass { Status::Pass } else { Status::Fail };
        self.results.missing_event(self.contract, status, events)
    }
}

/// Whether the last event already has this verdict: then closing is tried a second time.
fn is_recorded(events: &[Event], completed: &RunCompleted) -> bool {
    events.last().is_some_and(|last| {
        last.kind == EventType::RunCompleted
            && RunCompleted::from_data(&last.data).is_ok_and(|recorded| recorded == *completed)
    })
}
