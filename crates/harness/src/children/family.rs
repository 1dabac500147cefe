//! A run as the parent of others: it runs them one after the other, beside its own engine and no longer than that.

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::Instant;

use herma_core::child::ChildEnd;
use herma_core::egress::EgressMode;
use herma_core::event::{EventData, Source, ToolEvaluated};
use herma_core::{CancellationToken, Contract, RunId, Status};
use herma_engines::Engine;
use herma_evidence::{EventLog, WriteError, secrets};
use herma_policy::ChildRun;
use herma_router::budget::Amount;
use herma_router::service::ParentBudget;
use herma_rules::PathRules;
use herma_trust::check_egress;

use super::narrow::{Bounds, wider};
use crate::child_queue::{ChildAnswer, ChildAsk, ChildRunQueue, WantedChild};
use crate::context::RunContext;
use crate::error::Stop;
use crate::governance::record;
use crate::installation::Installation;
use crate::order::{Occasion, Order};
use crate::parent_run::ParentRun;
use crate::progress::Progress;
use crate::run_router::RunRouter;
use crate::submission::{Finished, RunSubmission, Submission};
use crate::tree_diff::BaseTree;

/// How many children a run may have: each leaves a bundle, and an agent could ask without end.
const MAX_CHILDREN: usize = 64;

/// Base directory for relative paths in a child contract; /dev/null so that none resolve.
const NO_DIRECTORY: &str = "/dev/null";

/// A run as the parent of others.
pub(crate) struct Family<'a> {
    installation: &'a Installation,
    order: &'a Order,
    run_child: RunSubmission,
    parent: Arc<ParentRun>,
    events: Arc<EventLog>,
    /// The parent's own: its children are cancelled with it.
    cancellation: CancellationToken,
    started: Instant,
    destination: herma_core::engine::DestinationKind,
    unwritten: Mutex<Option<WriteError>>,
}

impl<'a> Family<'a> {
    /// The run, whose engine is about to start.
    pub(crate) fn of(ctx: &RunContext<'a>, base: &BaseTree, router: Option<&RunRouter>) -> Self {
        let engine = ctx.installation.engines.get(&ctx.plan.engine);
        let scratch = engine.map(Engine::scratch_paths).unwrap_or_default();
        let root = ctx.occasion.child_of.map_or_else(
            || (ctx.contract.clone(), ctx.order.contract_dir.clone()),
            |parent| parent.root.clone(),
        );
        let mut lineage = ctx.occasion.child_of.map(|parent| parent.lineage.clone()).unwrap_or_default();
        lineage.push((ctx.plan.engine.clone(), ctx.contract.terms.id.to_string()));
        let parent = ParentRun {
            run: ctx.plan.run_id,
            lineage,
            depth: ctx.plan.depth.saturating_add(1),
            terms: ctx.effective_rules().cloned().collect(),
            workspace: ctx.dirs.workspace(),
            git: ctx.dirs.git(),
            content: base.git_dir.clone(),
            base_tree: base.baseline.tree.clone(),
            checkout: ctx.dirs.verification(),
            scratch: scratch.iter().map(ToString::to_string).collect(),
            root,
            router: router.and_then(|router| router.above(ctx.plan.run_id)),
            over: AtomicBool::new(false),
        };
        Self {
            installation: ctx.installation,
            order: ctx.order,
            run_child: ctx.run_child,
            parent: Arc::new(parent),
            events: Arc::clone(&ctx.events),
            cancellation: ctx.submission.cancellation.clone(),
            started: Instant::now(),
            destination: ctx.plan.destination,
            unwritten: Mutex::default(),
        }
    }

    /// Does the work of the parent's engine while children of this queue are run; they end with it.
    pub(crate) fn while_served<T>(
        &self,
        queue: &ChildRunQueue,
        work: impl FnOnce() -> Result<T, Stop>,
    ) -> Result<T, Stop> {
        let wanted = queue.open();
        let done = thread::scope(|scope| {
            let served = scope.spawn(move || self.serve(&wanted));
            let closing = Closing { queue, parent: &self.parent };
            let done = work();
            drop(closing);
            served.join().map_err(|_| Stop::panicked("a child was at work"))?;
            done
        })?;
        match self.unwritten.lock().unwrap_or_else(PoisonError::into_inner).take() {
            None => Ok(done),
            Some(error) => Err(error.into()),
        }
    }

    fn serve(&self, wanted: &Receiver<WantedChild>) {
        let mut had = 0;
        while let Ok(WantedChild { ask, rules, answer }) = wanted.recv() {
            let answered = if had < MAX_CHILDREN { self.child(&ask, &rules) } else { Err(too_many()) };
            had += usize::from(answered.is_ok());
            // The requester may be gone; the child's evidence exists all the same.
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
            .and_then(|child| (self.run_child)(self.installation, &order, occasion, &child, &link));
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

    /// The charge of all children so far. A child that has ended has no calls in flight.
    fn charged(&self) -> Amount {
        self.parent.router.as_ref().map(ParentBudget::charged).unwrap_or_default()
    }

    fn write(&self, data: impl Into<EventData>) {
        if let Err(why) = self.events.record(Source::Harness, data) {
            let mut unwritten = self.unwritten.lock().unwrap_or_else(PoisonError::into_inner);
            unwritten.get_or_insert(why);
        }
    }

    /// Removes paths of this machine from text for the inside.
    fn placeless(&self, text: &str) -> String {
        text.replace(&self.installation.home.root().display().to_string(), "herma's home")
    }
}

fn too_many() -> String {
    format!("this run has had {MAX_CHILDREN} children, which is the most")
}

/// Ends the children with the work of their parent, however that ends.
struct Closing<'a> {
    queue: &'a ChildRunQueue,
    parent: &'a ParentRun,
}

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        self.queue.close();
        self.parent.end();
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
