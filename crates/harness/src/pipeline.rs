//! A run, from contract to verdict: every step in its order. It is the only module that knows all of them.

use std::sync::Arc;
use std::thread::ScopedJoinHandle;

use herma_core::approval::Ruling;
use herma_core::contract::Action;
use herma_core::event::{ContractCreated, EventData, RunStarted};
use herma_core::signed::Signed;
use herma_core::store::StoreError;
use herma_core::{Contract, Digest, Step};
use herma_engines::Engine;
use herma_environments::build::BaseTree as BuildTree;
use herma_evidence::{Bundle, EventLog, Redactor, Trace, layout};
use herma_git::SourceRepo;
use tracing::{Span, info, info_span, warn};

use crate::checks;
use crate::close;
use crate::collect::{self, Collected};
use crate::context::{RunContext, StepProgress, joined};
use crate::decide::{self, ApprovalResults, GateResults};
use crate::environment::{Rebuild, RunEnvironment};
use crate::error::{Cause, OrderError, Stop};
use crate::gates::{self, Gates, Ready};
use crate::installation::Installation;
use crate::journal::Journal;
use crate::land::{self, Landable, LandingResults};
use crate::order::{Occasion, Order, Plan};
use crate::path_shims;
use crate::preparation::{Preparation, ProbeStep};
use crate::progress::Progress;
use crate::results::RunResults;
use crate::services::Services;
use crate::step_log::StepLog;
use crate::store_sink::StoreSink;
use crate::submission::{Finished, Submission};
use crate::supervise::{self, StagedEngine};
use crate::tree_diff::{BaseTree, with_changes};
use crate::verification::{self, Verifiable};
use crate::witness;
use crate::workspace::{self, TakenUp, WorkspaceState};
use herma_home::{ActiveRun, write_durably};

/// Runs a contract: gates, engine, checks and evidence.
///
/// An error means that there is no run at all, or one that the next herma command has to close.
pub fn run(installation: &Installation, order: &Order, watch: &dyn Progress) -> Result<Finished, OrderError> {
    run_on(installation, order, Occasion::default(), watch)
}

/// The same, on an occasion that only herma itself makes.
pub(crate) fn run_on(
    installation: &Installation,
    order: &Order,
    occasion: Occasion<'_>,
    watch: &dyn Progress,
) -> Result<Finished, OrderError> {
    let submission = Submission::new(installation, &installation.cancellation)?;
    run_submitted(installation, order, occasion, &submission, watch)
}

/// Runs a submission to its end.
pub(crate) fn run_submitted(
    installation: &Installation,
    order: &Order,
    occasion: Occasion<'_>,
    submission: &Submission,
    watch: &dyn Progress,
) -> Result<Finished, OrderError> {
    let (stage, destination) = (u8::from(order.contract.terms.stage), order.destination().as_str());
    let span = info_span!("run", id = %submission.id, engine = %order.engine, destination, stage);
    let _entered = span.enter();
    let finished = std::thread::scope(|scope| {
        // The digest of an engine takes a while; the decision needs it.
        let engine = installation.engines.get(&order.engine);
        scope.spawn(move || engine.map(Engine::digest));
        // The gates only read, and wait for other programs; meanwhile the run is started.
        let digest = order.contract.digest().map_err(OrderError::Contract)?;
        let gates = scope.spawn(move || gates::evaluate(installation, order, occasion, digest));
        let (ctx, active) = start(installation, order, occasion, digest, submission, watch)?;
        let begun = ctx.summary();
        let begun = scope.spawn(move || installation.store.call(|store| store.begin_run(&begun)));
        Pipeline::new(&ctx).run(gates, begun, active)
    })?;
    let blockers = finished.report.blockers.len();
    info!(status = finished.report.status.as_str(), blockers, "run closed");
    Ok(finished)
}

/// Starts the run: lock, directory, plan, bundle, first events. From here on it ends in a report.
fn start<'a>(
    installation: &'a Installation,
    order: &'a Order,
    occasion: Occasion<'a>,
    digest: Digest,
    submission: &'a Submission,
    watch: &'a dyn Progress,
) -> Result<(RunContext<'a>, ActiveRun), OrderError> {
    let policies = Arc::new(installation.policies()?);
    let clock = Arc::clone(&installation.clock);
    let Submission { id: run_id, at: started_at, .. } = *submission;
    let mut plan = Plan::new(order, occasion, run_id, started_at, digest);
    plan.trust_head = Some(installation.trust_log.head_to_name().map_err(OrderError::home)?);
    if let Some(engine) = installation.engines.get(&order.engine) {
        engine.version().clone_into(&mut plan.engine_version);
        engine.check(&order.assignment())?;
    }

    let dirs = installation.home.run(run_id);
    let active = installation.home.activate(run_id).map_err(OrderError::home)?;
    dirs.create().map_err(OrderError::home)?;
    write_durably(&dirs.plan(), &serde_json::to_vec(&plan).map_err(OrderError::Contract)?)
        .map_err(OrderError::home)?;
    let bundle = Bundle::create(dirs.bundle(), clock, order.fault.clone())?;
    bundle.not_before(started_at);
    let sink = Arc::new(StoreSink(Arc::clone(&installation.event_writer)));
    let events = EventLog::create(&bundle, run_id, Redactor::default()).with_sink(sink);
    let ctx = RunContext {
        installation,
        contract: &order.contract,
        order,
        occasion,
        submission,
        plan,
        journal: Journal::new(dirs.facts()),
        dirs,
        trace: Trace::create(&bundle),
        bundle,
        events: Arc::new(events.with_feed(Arc::clone(&submission.feed))),
        policies,
        watch,
        run_child: run_submitted,
        progress: StepProgress::default(),
        log: StepLog::new(Span::current()),
    };
    watch.started(run_id);
    ctx.step(Step::Start)?;
    for data in first_events(&ctx.plan, ctx.contract) {
        ctx.record(data)?;
    }
    ctx.bundle.write(layout::CONTRACT, ctx.plan.contract_text.as_bytes())?;
    Ok((ctx, active))
}

/// The events that every run begins with.
pub(crate) fn first_events(plan: &Plan, contract: &Contract) -> [EventData; 2] {
    let is_child = plan.depth > 0;
    let started = RunStarted {
        herma_version: plan.herma_version.clone(),
        engine: plan.engine.clone(),
        destination: plan.destination,
        stage: contract.terms.stage,
        trust_head: plan.trust_head,
        parent_run: plan.parent_run.filter(|_| is_child),
        depth: is_child.then_some(plan.depth),
    };
    let created = ContractCreated {
        contract_id: contract.terms.id.clone(),
        contract_digest: plan.contract_digest,
        title: contract.terms.title.clone(),
    };
    [started.into(), created.into()]
}

/// The steps of one run, and what passes from one to the next.
struct Pipeline<'r, 'a> {
    ctx: &'r RunContext<'a>,
    results: RunResults,
    services: Services,
    /// The target, where it is a repository.
    source: Option<SourceRepo>,
    /// The repository that was made for the run, where its stage makes one.
    disposable: Option<SourceRepo>,
    /// The ruling of the approval that this run has used.
    ruling: Option<Signed<Ruling>>,
    /// The errors of services that did not end properly.
    stops: Vec<Stop>,
}

impl<'r, 'a> Pipeline<'r, 'a> {
    fn new(ctx: &'r RunContext<'a>) -> Self {
        let (results, services) = (RunResults::default(), Services::default());
        Self { ctx, results, services, source: None, disposable: None, ruling: None, stops: Vec::new() }
    }

    /// Takes every step, ends the services, and closes the run.
    fn run(
        mut self,
        gates: ScopedJoinHandle<'_, Gates>,
        begun: ScopedJoinHandle<'_, Result<(), StoreError>>,
        active: ActiveRun,
    ) -> Result<Finished, OrderError> {
        let stopped = self.govern(gates, begun).err();
        // A run that stopped early still has its services, whose records are evidence too.
        let mut stops: Vec<Stop> = stopped.into_iter().chain(std::mem::take(&mut self.stops)).collect();
        stops.extend(self.end_services());
        let mut internal_error = None;
        for stop in stops {
            internal_error = internal_error.or(self.note_stop(stop));
        }
        self.witness_once_more();
        let Self { ctx, mut results, source, disposable, .. } = self;
        let handed = results.verified.as_mut().and_then(|verified| verified.handed.take());
        let stage = ctx.contract.terms.stage;
        let place = land::landing_place(stage, source.as_ref(), disposable.as_ref());
        let place = place.map(|(place, _)| place.clone());
        let (report, bundle) = close::close(ctx, active, results, place)?;
        Ok(Finished { report, bundle, internal_error, handed })
    }

    /// The way of a run: each step is written before it is taken, and the first that cannot continue stops the run.
    fn govern(
        &mut self,
        gates: ScopedJoinHandle<'_, Gates>,
        begun: ScopedJoinHandle<'_, Result<(), StoreError>>,
    ) -> Result<(), Stop> {
        let ctx = self.ctx;
        ctx.step(Step::Gates)?;
        let mut gates = joined(gates)?;
        joined(begun)?.map_err(Stop::write)?;
        self.note_gates(&gates)?;
        let Some(ready) = gates.ready.take() else { return self.decide(&gates) };
        ctx.narrow_to(ready.target.narrowed(&ctx.contract.terms));

        ctx.step(Step::Probe)?;
        let step = ProbeStep {
            findings: &mut gates.findings,
            services: &mut self.services,
            started: &mut self.results.services,
            probe: &mut self.results.probe,
            environment: &mut self.results.environment,
        };
        let prepared = Preparation::beside_gates(ctx, &ready, gates.engine_digest, step);
        ctx.journal.append_if_any(self.results.services.as_ref())?;
        ctx.journal.append_if_any(self.results.probe.as_ref())?;
        let Preparation { base, workspace, environment } = prepared?;
        self.ruling = decide::use_approval(ctx, &mut gates, &mut self.results.approval)?;
        self.decide(&gates)?;
        if matches!(workspace, WorkspaceState::NotNeeded) {
            return self.witness();
        }

        ctx.step(Step::Workspace)?;
        let TakenUp { control_files, staged, view } = match workspace {
            WorkspaceState::Ready(fresh) => {
                let made = (*fresh, environment.as_ref());
                workspace::take_up(ctx, &base, made, &mut self.results.workspace)?
            }
            WorkspaceState::Unusable(why) => {
                return Err(workspace::refuse(ctx, why, &mut self.results.workspace));
            }
            WorkspaceState::NotNeeded => return Ok(()),
        };
        self.disposable = land::make_repository(ctx, &base, &mut self.results.disposable)?;
        ctx.journal.append_if_any(self.results.workspace.as_ref())?;
        ctx.journal.append_if_any(self.results.disposable.as_ref())?;

        ctx.step(Step::Engine)?;
        self.run_engine(staged, &base)?;

        ctx.step(Step::Collect)?;
        view.map_or(Ok(()), |view| view.take_over(ctx))?;
        let first_test = verification::prepare(ctx, &ready)?;
        let not_of_the_agent = environment.as_ref().map(RunEnvironment::files);
        let (collected, tree) = collect::collect(ctx, &base, &control_files, not_of_the_agent)?;
        let collected = self.results.collected.insert(collected).clone();

        ctx.step(Step::Check)?;
        let actions = self.results.forbidden_actions();
        checks::judge(ctx, &base, (&collected, &tree), &actions, &mut self.results.checked)?;

        ctx.step(Step::Verify)?;
        let environment = self.fitting_environment(environment, &ready, (&base, &collected), &actions)?;
        let environment = environment.as_ref();
        let stale = self.results.stale_environment();
        let Some(checked) = self.results.checked.as_ref() else { return Ok(()) };
        let actions = &actions[..];
        let result = Verifiable { base: &base, collected: &collected, checked, actions, environment, stale };
        verification::verify(ctx, result, &ready, first_test, &mut self.results.verified)?;

        ctx.step(Step::Witness)?;
        self.witness()?;
        if !ctx.contract.terms.stage.lands() {
            return Ok(());
        }

        ctx.step(Step::Land)?;
        ctx.settle()?;
        self.land(&base, &collected.result_tree)
    }

    /// The environment for verification: where the patch changes an input, one that is built again for it, if the contract permits
    /// that. Otherwise the changed inputs are recorded.
    fn fitting_environment(
        &mut self,
        environment: Option<RunEnvironment>,
        ready: &Ready,
        (base, collected): (&BaseTree, &Collected),
        actions: &[Action],
    ) -> Result<Option<RunEnvironment>, Stop> {
        let Some(mut environment) = environment else { return Ok(None) };
        let changed = environment.changed_inputs(ready, &collected.changed_files);
        if environment.has_build_output(ready) && !collected.changed_files.is_empty() {
            self.ctx.note(
                "environment: `setup` ran on the base and left files in the checkout; what it built from sources is as old as the \
                 base unless `verify` builds it again",
            );
        }
        let RunResults { environment: results, checked, .. } = &mut self.results;
        let (Some(results), Some(checked)) = (results.as_mut(), checked.as_ref()) else { return Ok(None) };
        if changed.is_empty() {
            return Ok(Some(environment));
        }
        // Nothing is fetched for a patch that fails anyway.
        let again = if verification::pointless(self.ctx, (collected, checked, actions)).is_none() {
            let entries = with_changes(base, &collected.changed_files);
            let top = base.commit_on_top(&collected.changed_files)?;
            let repository = base.repository(top.as_ref());
            let (git_dir, tree) = (&base.git_dir, &collected.result_tree);
            let tree = BuildTree { git_dir, tree, entries: &entries, repository };
            environment.rebuild(self.ctx, ready, tree, &changed)?
        } else {
            Rebuild::Refused("the patch breaks other rules".to_owned())
        };
        let environment = match again {
            Rebuild::Done(built) => *built,
            Rebuild::Refused(why) => {
                (results.changed_inputs, results.rebuild_refused) = (changed, Some(why));
                environment
            }
        };
        results.used = environment.used();
        self.ctx.journal.append(results)?;
        Ok(Some(environment))
    }

    /// Runs the engine, then ends its services and reads their records.
    fn run_engine(&mut self, staged: StagedEngine<'_>, base: &BaseTree) -> Result<(), Stop> {
        let ctx = self.ctx;
        let ended = supervise::run_engine(ctx, &self.services, staged, base, &mut self.results.engine);
        ctx.journal.append_if_any(self.results.engine.as_ref())?;
        ended?;
        let stops = self.end_services();
        if !stops.is_empty() {
            self.stops.extend(stops);
            return Err(Stop::Blocked);
        }
        let got_out = self.results.egress.as_ref().is_some_and(|egress| egress.used.allowed > 0);
        path_shims::read(ctx, got_out, &mut self.results.shims)
    }

    fn note_gates(&mut self, gates: &Gates) -> Result<(), Stop> {
        self.source = gates.source.as_ref().map(|(repo, _)| repo.clone());
        self.ctx.journal.append(self.results.gates.insert(GateResults::of(gates)))?;
        Ok(self.ctx.journal.append(self.results.approval.insert(ApprovalResults::of(gates)))?)
    }

    fn decide(&mut self, gates: &Gates) -> Result<(), Stop> {
        decide::decide(self.ctx, gates, &mut self.results.decision)
    }

    fn witness(&mut self) -> Result<(), Stop> {
        witness::witness(self.source.as_ref(), self.disposable.as_ref(), &mut self.results.witnessed)
    }

    /// Lands the result, if every check has passed and every admission still holds.
    fn land(&mut self, base: &BaseTree, tree: &str) -> Result<(), Stop> {
        let ctx = self.ctx;
        if !self.results.would_pass(ctx.contract, &ctx.events.events()) {
            return Ok(());
        }
        let digest = self.results.engine_digest();
        if let Err(revoked) = decide::still_admitted(ctx, digest, self.ruling.as_ref()) {
            self.results.landing = Some(LandingResults::refused(revoked));
            return Ok(());
        }
        let stage = ctx.contract.terms.stage;
        let place = land::landing_place(stage, self.source.as_ref(), self.disposable.as_ref());
        let Some((place, kind)) = place else { return Ok(()) };
        let target_dir = self.results.gates.as_ref().and_then(|gates| gates.target_dir.clone());
        let landable = Landable { place, kind, base, tree, target_dir: target_dir.as_deref() };
        land::land(ctx, landable, &mut self.results.landing, &mut self.results.witnessed)
    }

    /// Ends the services that still run, and says which of them stop the run.
    fn end_services(&mut self) -> Vec<Stop> {
        let own_calls = self.results.own_model_calls();
        let RunResults { models, egress, tools, .. } = &mut self.results;
        self.services.end(self.ctx, own_calls, (models, egress, tools))
    }

    /// A run that stopped early has touched the target as little as any other, and its report says so.
    fn witness_once_more(&mut self) {
        let seen = self.results.witnessed.as_ref();
        let unseen = seen.is_none_or(|seen| seen.source_after.is_none() && seen.disposable_after.is_none());
        if self.results.engine_started()
            && unseen
            && let Err(Stop::Internal(why) | Stop::Write(why)) = self.witness()
        {
            self.results.end.interrupted.get_or_insert(format!("the target could not be read: {why}"));
        }
    }

    /// Records why the run ended early, and returns an error that is herma's own.
    fn note_stop(&mut self, stop: Stop) -> Option<Cause> {
        warn!(reason = stop.name(), "run stopped early");
        let end = &mut self.results.end;
        match (stop, self.ctx.cancelled_by()) {
            (Stop::Blocked, _) => None,
            (Stop::Interrupted(why), _) => {
                end.interrupted = Some(why);
                None
            }
            (Stop::Write(failure), _) => {
                self.ctx.installation.home.release_reserve();
                end.write_failures.push(failure.to_string());
                None
            }
            // The cancellation may have ended what the step needed.
            (Stop::Destination(error), Some(cancelled)) => {
                end.interrupted = Some(format!("{cancelled}: {error}"));
                None
            }
            (Stop::Internal(error), Some(cancelled)) => {
                end.interrupted = Some(format!("{cancelled}: {error}"));
                None
            }
            (Stop::Destination(error), None) => {
                end.interrupted = Some(format!("the destination failed: {error}"));
                None
            }
            (Stop::Internal(error), None) => {
                self.ctx.installation.home.release_reserve();
                end.interrupted = Some(format!("herma stopped by itself: {error}"));
                Some(error)
            }
        }
    }
}
