//! A run, from contract to verdict.

use std::path::PathBuf;
use std::sync::Arc;
use std::thread::{JoinHandle, ScopedJoinHandle};

use herma_core::approval::Ruling;
use herma_core::contract::Terms;
use herma_core::event::{self, ContractCreated, EventData, RunStarted, Source};
use herma_core::report::LandedIn;
use herma_core::signed::Signed;
use herma_core::store::{RunSummary, Store as _, StoreError};
use herma_core::{CancellationToken, Contract, Digest, Report, RunId, Stage, Step, Timestamp};
use herma_engines::Engine;
use herma_evidence::{Bundle, EventLog, Redactor, RunFeed, Trace, layout};
use herma_git::{Baseline, GitDir, SourceRepo, TreeEntry};
use herma_home::{ActiveRun, RunDirs, remove_tree, write_durably};
use herma_policy::Policies;

use crate::attempts;
use crate::checks;
use crate::children::HandedFile;
use crate::close;
use crate::collect;
use crate::egress::{self, RunEgress};
use crate::error::{OrderError, Stop};
use crate::facts::Facts;
use crate::gates::{self, Findings, Gates, Ready};
use crate::governance::{self, RunGovernance};
use crate::installation::Installation;
use crate::land;
use crate::models::{self, RunRouter};
use crate::order::{Occasion, Order, Plan};
use crate::prepare::{self, Made};
use crate::probe;
use crate::progress::Progress;
use crate::supervise;
use crate::verification;

/// A run that has ended.
#[derive(Clone, Debug)]
pub struct Finished {
    /// What it came to.
    pub report: Report,
    /// Where its evidence lies.
    pub bundle: PathBuf,
    /// The error inside herma that ended it early, if one did.
    pub internal_error: Option<String>,
    /// What a child made, for its parent.
    pub(crate) handed: Option<Vec<HandedFile>>,
}

/// Takes a contract through every gate, lets the engine work, checks the result, and leaves the evidence.
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

/// A run before its first step: its name, its own cancellation token, and where its updates are published.
#[derive(Clone, Debug)]
pub(crate) struct Submission {
    pub(crate) id: RunId,
    pub(crate) at: Timestamp,
    pub(crate) cancellation: CancellationToken,
    pub(crate) feed: Arc<RunFeed>,
}

impl Submission {
    /// Names a run that is cancelled with `parent`, or alone.
    pub(crate) fn new(installation: &Installation, parent: &CancellationToken) -> Result<Self, OrderError> {
        let mut entropy = [0; 10];
        getrandom::fill(&mut entropy).map_err(|e| OrderError::Random(e.to_string()))?;
        let at = installation.clock.now();
        let (cancellation, feed) = (parent.child(), Arc::default());
        Ok(Self { id: RunId::new(at, entropy), at, cancellation, feed })
    }
}

/// Runs what was submitted, to its end.
pub(crate) fn run_submitted(
    installation: &Installation,
    order: &Order,
    occasion: Occasion<'_>,
    submission: &Submission,
    watch: &dyn Progress,
) -> Result<Finished, OrderError> {
    std::thread::scope(|scope| {
        // Taking the digest of everything that runs takes a while; it is needed at the decision.
        let engine = installation.engines.get(&order.engine);
        scope.spawn(move || engine.map(Engine::digest));
        // The gates only read, and wait for other programs; meanwhile the run is written down.
        let digest = order.contract.digest().map_err(OrderError::contract)?;
        let gates = scope.spawn(move || gates::evaluate(installation, order, occasion, digest));
        let mut run = Run::start(installation, order, occasion, digest, submission, watch)?;
        let begun = run.summary();
        let begun = scope.spawn(move || installation.store.begin(&begun));
        let stopped = run.govern(gates, begun).err();
        // A run that stopped early still has its router and its egress proxy, whose records are part of the evidence too.
        let unrecorded = models::end(&mut run).err();
        let undecided = egress::end(&mut run).err();
        let unjudged = governance::end(&mut run).err();
        let internal_error = run
            .note_stop(stopped)
            .or(run.note_stop(unrecorded))
            .or(run.note_stop(undecided))
            .or(run.note_stop(unjudged));
        run.witness_once_more();
        let handed = run.handed.take();
        close::close(run).map(|(report, bundle)| Finished { report, bundle, internal_error, handed })
    })
}

/// A run under way.
pub(crate) struct Run<'a> {
    pub(crate) installation: &'a Installation,
    pub(crate) contract: &'a Contract,
    pub(crate) order: &'a Order,
    pub(crate) occasion: Occasion<'a>,
    pub(crate) submission: &'a Submission,
    pub(crate) plan: Plan,
    pub(crate) dirs: RunDirs,
    pub(crate) active: ActiveRun,
    pub(crate) bundle: Bundle,
    pub(crate) events: Arc<EventLog>,
    pub(crate) trace: Trace,
    /// The step that it is at.
    pub(crate) at: Step,
    pub(crate) facts: Facts,
    /// The target, where it is a repository.
    pub(crate) source: Option<SourceRepo>,
    /// The person's word that this run has used.
    pub(crate) ruling: Option<Signed<Ruling>>,
    /// The contract's terms with the paths and actions of the target's admission in place of its own.
    admitted_terms: Option<Terms>,
    /// The run's router, while it may be asked.
    pub(crate) router: Option<RunRouter>,
    /// The run's egress proxy, while it may be asked.
    pub(crate) egress: Option<RunEgress>,
    /// What its tool calls are judged by.
    pub(crate) policies: Arc<Policies>,
    /// Where its engine asks about tool calls, while it may.
    pub(crate) governance: Option<RunGovernance>,
    /// The repository that was made for the run, where its stage makes one.
    pub(crate) disposable: Option<SourceRepo>,
    /// The tree that the workspace began with.
    pub(crate) base_tree: Option<String>,
    /// What it made, where it is the child of another run.
    pub(crate) handed: Option<Vec<HandedFile>>,
    /// Trees that are being removed.
    pub(crate) removals: Vec<JoinHandle<()>>,
    pub(crate) watch: &'a dyn Progress,
}

/// What a run stands on: the base tree, in herma's own git directory.
pub(crate) struct Ground {
    pub(crate) git_dir: GitDir,
    pub(crate) baseline: Baseline,
    pub(crate) entries: Vec<TreeEntry>,
}

impl<'a> Run<'a> {
    /// The way of a run: each step is written before it is taken, and the first that cannot go on ends it.
    fn govern(
        &mut self,
        gates: ScopedJoinHandle<'_, Gates>,
        begun: ScopedJoinHandle<'_, Result<(), StoreError>>,
    ) -> Result<(), Stop> {
        self.step(Step::Gates)?;
        let mut gates = joined(gates)?;
        joined(begun)?.map_err(|error| Stop::Write(error.to_string()))?;
        self.note_gates(&gates);
        let Some(ready) = gates.ready.take() else { return self.decide(&gates) };
        self.admitted_terms = ready.target.narrowed(&self.contract.terms);

        self.step(Step::Probe)?;
        // The workspace is made while the walls are tried; nobody uses it before the decision.
        let (ground, workspace) = self.try_walls(&ready, &mut gates.findings)?;
        self.use_approval(&mut gates)?;
        self.decide(&gates)?;
        let Some(workspace) = workspace else { return self.witness_target() };

        self.step(Step::Workspace)?;
        let engine = self.engine()?;
        let (control_files, staged) = prepare::take_up(self, &ground, workspace)?;
        land::make_repository(self, &ground)?;

        self.step(Step::Engine)?;
        supervise::engine(self, engine, staged)?;
        models::end(self)?;
        egress::end(self)?;
        governance::end(self)?;
        attempts::read(self)?;

        self.step(Step::Collect)?;
        let first_test = verification::prepare(self, &ready)?;
        let tree = collect::collect(self, &ground, &control_files)?;

        self.step(Step::Check)?;
        checks::judge(self, &ground, &tree)?;

        self.step(Step::Verify)?;
        verification::verify(self, &ground, &ready, first_test)?;

        self.step(Step::Witness)?;
        self.witness_target()?;
        if !self.contract.terms.stage.lands() {
            return Ok(());
        }

        self.step(Step::Land)?;
        self.settle()?;
        land::land(self, &ground)
    }

    /// Tries the walls, and meanwhile makes what the engine will find behind them.
    fn try_walls<'r>(&mut self, ready: &'r Ready, findings: &mut Findings) -> Result<Made<'r>, Stop>
    where
        'a: 'r,
    {
        let (installation, dirs) = (self.installation, self.dirs.clone());
        let (made, tried) = std::thread::scope(|scope| {
            // herma's own git directory is read from the target.
            let ground = scope.spawn(|| prepare::ground(installation, &ready.target, &dirs));
            let arranged = probe::arrange(self, ready, findings)?;
            let (run, wanted) = (&*self, arranged.is_some());
            let made = scope.spawn(move || {
                let ground = joined(ground)??;
                let workspace = if wanted { prepare::workspace(run, ready, &ground) } else { Ok(None) };
                Ok::<_, Stop>((ground, workspace))
            });
            let tried = arranged.map(|arranged| probe::try_walls(run, ready, arranged)).transpose();
            Ok::<_, Stop>((joined(made)?, tried))
        })?;
        // Nothing is asked or used up where herma was told to end, or for a base that cannot be read or copied.
        self.check_cancelled()?;
        let (ground, workspace) = made?;
        let (workspace, failed) = match workspace {
            Ok(workspace) => (workspace, None),
            Err(full @ Stop::Write(_)) => return Err(full),
            Err(failed) => (None, Some(failed)),
        };
        if let Some(tried) = tried? {
            probe::evaluate(self, ready, tried, failed, findings)?;
        }
        self.check_cancelled()?;
        Ok((ground, workspace))
    }

    /// Makes the run: lock, directory, plan, bundle, first events.
    fn start(
        installation: &'a Installation,
        order: &'a Order,
        occasion: Occasion<'a>,
        digest: Digest,
        submission: &'a Submission,
        watch: &'a dyn Progress,
    ) -> Result<Self, OrderError> {
        let contract = &order.contract;
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
        write_durably(&dirs.plan(), &serde_json::to_vec(&plan).map_err(OrderError::contract)?)
            .map_err(OrderError::home)?;
        let bundle = Bundle::create(dirs.bundle(), Arc::clone(&clock), order.fault.clone())?;
        bundle.not_before(started_at);
        let redactor = Redactor::default();
        let events =
            Arc::new(EventLog::create(&bundle, run_id, redactor).with_feed(Arc::clone(&submission.feed)));
        let trace = Trace::create(&bundle);
        let mut run = Self {
            installation,
            contract,
            order,
            occasion,
            submission,
            plan,
            dirs,
            active,
            bundle,
            events,
            trace,
            at: Step::Start,
            facts: Facts::default(),
            source: None,
            ruling: None,
            admitted_terms: None,
            router: None,
            egress: None,
            policies,
            governance: None,
            disposable: None,
            base_tree: None,
            handed: None,
            removals: Vec::new(),
            watch,
        };
        watch.started(run_id);
        run.open()?;
        Ok(run)
    }

    /// The first step: from here on there is a run, and it ends in a report whatever happens.
    fn open(&mut self) -> Result<(), OrderError> {
        self.step(Step::Start).map_err(OrderError::from)?;
        for data in first_events(&self.plan, self.contract) {
            self.record(data)?;
        }
        Ok(self.bundle.write(layout::CONTRACT, self.plan.contract_text.as_bytes())?)
    }

    /// Its row in the store, while it is under way.
    fn summary(&self) -> RunSummary {
        RunSummary {
            run_id: self.plan.run_id,
            contract_id: self.contract.terms.id.clone(),
            contract_digest: self.plan.contract_digest,
            engine: self.plan.engine.clone(),
            destination: self.plan.destination,
            stage: self.contract.terms.stage,
            started_at: self.plan.started_at,
            finished_at: None,
            status: None,
            blockers: Vec::new(),
        }
    }

    pub(crate) fn engine(&self) -> Result<&'a dyn Engine, Stop> {
        let engine = self.installation.engines.get(&self.plan.engine);
        engine.ok_or_else(|| Stop::Internal("the engine is gone".to_owned()))
    }

    /// Makes steps and events so far durable, before something is done that is not undone by a power cut.
    pub(crate) fn settle(&self) -> Result<(), Stop> {
        self.trace.settle()?;
        self.events.settle()?;
        Ok(self.bundle.settle()?)
    }

    /// Removes a tree that is not needed any more while the run goes on. What is left is removed when it closes.
    pub(crate) fn remove_aside(&mut self, dir: PathBuf) {
        self.removals.push(std::thread::spawn(move || drop(remove_tree(&dir))));
    }

    /// Records what herma itself saw.
    pub(crate) fn record(&self, data: impl Into<EventData>) -> Result<(), Stop> {
        self.record_from(Source::Harness, &data.into())
    }

    /// Records what the agent said.
    pub(crate) fn record_agent(&self, data: impl Into<EventData>) -> Result<(), Stop> {
        self.record_from(Source::Agent, &data.into())
    }

    fn record_from(&self, source: Source, data: &EventData) -> Result<(), Stop> {
        let (kind, data) = (data.kind(), data.to_map());
        self.watch.event(kind, &event::note(&data));
        Ok(self.events.append(source, kind, data)?)
    }

    /// Takes down what the target is now, to be compared with what it was before the run.
    pub(crate) fn witness_target(&mut self) -> Result<(), Stop> {
        if let Some(source) = &self.source {
            self.facts.source_after = Some(source.capture()?);
        }
        if let Some(made) = &self.disposable {
            self.facts.disposable_after = Some(made.capture()?);
        }
        Ok(())
    }

    /// The rules that this run stands under: the contract's first, then those of the target's admission and those of the
    /// run that asked for it, which can only narrow them.
    pub(crate) fn every_terms(&self) -> impl Iterator<Item = &Terms> {
        let above = self.occasion.child_of.into_iter().flat_map(|parent| &parent.terms);
        std::iter::once(&self.contract.terms).chain(&self.admitted_terms).chain(above)
    }

    /// The repository that this run lands in, where its stage lands in one.
    pub(crate) fn landing_place(&self) -> Option<(&SourceRepo, LandedIn)> {
        match self.contract.terms.stage {
            Stage::DisposableRepo => Some((self.disposable.as_ref()?, LandedIn::Disposable)),
            Stage::OwnedRepo => Some((self.source.as_ref()?, LandedIn::Target)),
            _ => None,
        }
    }
}

pub(crate) fn joined<T>(thread: ScopedJoinHandle<'_, T>) -> Result<T, Stop> {
    thread.join().map_err(|_| Stop::Internal("a thread panicked".to_owned()))
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

/// A serialised value as the bundle's files show it.
pub(crate) fn pretty(value: &impl serde::Serialize) -> Result<Vec<u8>, Stop> {
    let mut bytes = serde_json::to_vec_pretty(value).map_err(|e| Stop::Internal(e.to_string()))?;
    bytes.push(b'\n');
    Ok(bytes)
}
