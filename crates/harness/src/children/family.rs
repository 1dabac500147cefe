//! A run as the parent of others: it runs them one after the other, beside its own engine and no longer than that.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::Instant;

use herma_core::child::ChildEnd;
use herma_core::contract::Terms;
use herma_core::egress::EgressMode;
use herma_core::engine::EngineName;
use herma_core::event::{EventData, Source, ToolEvaluated};
use herma_core::{CancellationToken, Contract, RunId, Status};
use herma_engines::Engine;
use herma_evidence::{EventLog, secrets};
use herma_policy::ChildRun;
use herma_router::budget::Amount;
use herma_router::service::RunAbove;
use herma_rules::PathRules;
use herma_trust::check_egress;

use super::ask::{ChildAnswer, ChildAsk};
use super::door::{ChildDoor, Wanted};
use super::narrow::{Bounds, wider};
use crate::error::Stop;
use crate::governance::record;
use crate::installation::Installation;
use crate::order::{Occasion, Order};
use crate::progress::Progress;
use crate::run::{Finished, Run, Submission, run_submitted};

/// How many runs may lie one in the other below the one that a person started.
pub(crate) const MOST_DEEP: u8 = 5;

/// How many children a run may have: each leaves a bundle, and an agent could ask without end.
const MOST_CHILDREN: usize = 64;

/// Where a child's contract lies: nowhere, so that no path in it leads anywhere.
const NO_DIRECTORY: &str = "/dev/null";

/// What a child knows of the run that asked for it.
#[derive(Debug)]
pub(crate) struct ChildOf {
    /// Which.
    pub(crate) run: RunId,
    /// How deep the child lies.
    pub(crate) depth: u8,
    /// The rules that its parent stands under; it stands under them too.
    pub(crate) terms: Vec<Terms>,
    /// The engine and the contract of the parent and of each run above it, as policies know them.
    pub(crate) lineage: Vec<(EngineName, String)>,
    /// The parent's workspace, as the child's target.
    pub(super) workspace: PathBuf,
    /// herma's own git directory for the parent, and the tree in it that the parent began with.
    pub(super) git: PathBuf,
    pub(crate) base_tree: String,
    /// A checkout of that tree that no agent sees.
    pub(super) checkout: PathBuf,
    /// Where the parent's engine leaves things that nobody wants.
    pub(super) scratch: Vec<String>,
    /// The contract that a person started, and where it lies: where its repository's runs take place, its children do.
    pub(crate) root: (Contract, PathBuf),
    /// The parent's router, whose budget the child's calls count against; none where it has no model.
    pub(crate) router: Option<RunAbove>,
    over: AtomicBool,
}

impl ChildOf {
    /// Whether the parent's engine has ended, so that nobody waits for the child.
    pub(crate) fn is_over(&self) -> bool {
        self.over.load(Ordering::Acquire)
    }
}

/// A run as the parent of others.
pub(crate) struct Family<'a> {
    installation: &'a Installation,
    order: &'a Order,
    parent: Arc<ChildOf>,
    events: Arc<EventLog>,
    /// The parent's own: its children are cancelled with it.
    cancellation: CancellationToken,
    started: Instant,
    destination: herma_core::engine::DestinationKind,
    unwritten: Mutex<Option<String>>,
}

impl<'a> Family<'a> {
    /// The run, whose engine is about to start.
    pub(crate) fn of(run: &Run<'a>) -> Self {
        let engine = run.installation.engines.get(&run.plan.engine);
        let scratch = engine.map(Engine::scratch_paths).unwrap_or_default();
        let root = run.occasion.child_of.map_or_else(
            || (run.contract.clone(), run.order.contract_dir.clone()),
            |child_of| child_of.root.clone(),
        );
        let mut lineage = run.occasion.child_of.map(|parent| parent.lineage.clone()).unwrap_or_default();
        lineage.push((run.plan.engine.clone(), run.contract.terms.id.to_string()));
        let parent = ChildOf {
            run: run.plan.run_id,
            lineage,
            depth: run.plan.depth.saturating_add(1),
            terms: run.every_terms().cloned().collect(),
            workspace: run.dirs.workspace(),
            git: run.dirs.git(),
            base_tree: run.base_tree.clone().unwrap_or_default(),
            checkout: run.dirs.verification(),
            scratch: scratch.iter().map(ToString::to_string).collect(),
            root,
            router: run.router.as_ref().and_then(|router| router.above(run.plan.run_id)),
            over: AtomicBool::new(false),
        };
        Self {
            installation: run.installation,
            order: run.order,
            parent: Arc::new(parent),
            events: Arc::clone(&run.events),
            cancellation: run.submission.cancellation.clone(),
            started: Instant::now(),
            destination: run.plan.destination,
            unwritten: Mutex::default(),
        }
    }

    /// Does the work of the parent's engine while children are served at this door; with it, they end.
    pub(crate) fn while_served<T>(
        &self,
        door: &ChildDoor,
        work: impl FnOnce() -> Result<T, Stop>,
    ) -> Result<T, Stop> {
        let wanted = door.open();
        let done = thread::scope(|scope| {
            let served = scope.spawn(move || self.serve(&wanted));
            let closing = Closing { door, parent: &self.parent };
            let done = work();
            drop(closing);
            served.join().map_err(|_| Stop::panicked("a child was at work"))?;
            done
        })?;
        match self.unwritten.lock().unwrap_or_else(PoisonError::into_inner).take() {
            None => Ok(done),
            Some(why) => Err(Stop::Write(why)),
        }
    }

    fn serve(&self, wanted: &Receiver<Wanted>) {
        let mut had = 0;
        while let Ok(Wanted { ask, rules, answer }) = wanted.recv() {
            let answered = if had < MOST_CHILDREN { self.child(&ask, &rules) } else { Err(too_many()) };
            had += usize::from(answered.is_ok());
            // Who asked may be gone by now; the child's evidence is there all the same.
            let _ = answer.send(answered.unwrap_or_else(ChildAnswer::Refused));
        }
    }

    /// Runs a child to its end, or says why not.
    fn child(&self, ask: &ChildAsk, rules: &[String]) -> Result<ChildAnswer, String> {
        let contract = self.read(ask)?;
        let order = Order {
            contract,
            contract_text: ask.contract.clone(),
            contract_dir: PathBuf::from(NO_DIRECTORY),
            engine: ask.engine.clone(),
            destination: Some(self.destination),
            script: ask.script.clone(),
            keep_workspace: false,
            egress: EgressMode::Strict,
            resumes: None,
            fault: None,
        };
        let occasion = Occasion { child_of: Some(&self.parent), ..Occasion::default() };
        let asked = ChildRun { engine: ask.engine.clone(), contract: order.contract.terms.id.to_string() };
        let judged = record::child(Some(&asked), rules, None);
        let link = Link { family: self, judged, child: OnceLock::new() };
        let before = self.charged();
        let finished = Submission::new(self.installation, &self.cancellation)
            .and_then(|child| run_submitted(self.installation, &order, occasion, &child, &link));
        if let Some(&child) = link.child.get() {
            let status = finished.as_ref().ok().map(|finished| finished.report.status);
            // There is one child at a time: what was charged below since it began is its own and its children's.
            let charged = Some(self.charged().minus(before));
            self.write(ChildEnd { child, status, charged });
        }
        let Finished { report, handed, .. } = finished.map_err(|why| self.placeless(&why.to_string()))?;
        let files = handed.filter(|_| report.status == Status::Pass);
        Ok(ChildAnswer::Ended { report: Box::new(report), files })
    }

    /// The contract, if it can be read and is not wider than the parent's.
    fn read(&self, ask: &ChildAsk) -> Result<Contract, String> {
        let text = ask.contract.as_bytes();
        let contract = Contract::parse(text).map_err(|bad| format!("its contract: {bad}"))?;
        check_egress(&contract, &ask.contract).map_err(|bad| format!("its contract: {bad}"))?;
        PathRules::compile(&contract.terms).map_err(|bad| format!("its contract: {bad}"))?;
        if let Some(finding) = secrets::scan(text).first() {
            return Err(format!("its contract holds what looks like a secret ({})", finding.rule));
        }
        let total = self.order.contract.terms.limits.total.duration();
        let left = total.saturating_sub(self.started.elapsed());
        let bounds = Bounds { terms: &self.parent.terms, left, destination: self.destination };
        match wider(&bounds, &contract.terms) {
            Some(why) => Err(format!("a child may do no more than its parent: {why}")),
            None => Ok(contract),
        }
    }

    /// What all children were charged so far. None has calls under way when it has ended.
    fn charged(&self) -> Amount {
        self.parent.router.as_ref().map(RunAbove::charged).unwrap_or_default()
    }

    fn write(&self, data: impl Into<EventData>) {
        if let Err(why) = self.events.record(Source::Harness, data) {
            let mut unwritten = self.unwritten.lock().unwrap_or_else(PoisonError::into_inner);
            unwritten.get_or_insert_with(|| why.to_string());
        }
    }

    /// What goes inside names no place of this machine.
    fn placeless(&self, text: &str) -> String {
        text.replace(&self.installation.home.root().display().to_string(), "herma's home")
    }
}

fn too_many() -> String {
    format!("this run has had {MOST_CHILDREN} children, which is the most")
}

/// Ends the children with the work of their parent, however that ends.
struct Closing<'a> {
    door: &'a ChildDoor,
    parent: &'a ChildOf,
}

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        self.door.close();
        self.parent.over.store(true, Ordering::Release);
    }
}

/// Writes into the parent's events which run its child is.
struct Link<'a> {
    family: &'a Family<'a>,
    /// That it was asked for, and by which rules it is there.
    judged: ToolEvaluated,
    child: OnceLock<RunId>,
}

impl Progress for Link<'_> {
    fn started(&self, run_id: RunId) {
        let depth = Some(self.family.parent.depth);
        let _ = self.child.set(run_id);
        self.family.write(ToolEvaluated { child: Some(run_id), depth, ..self.judged.clone() });
    }
}
