//! One run under way, as every step sees it. The context knows none of the steps.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::{JoinHandle, ScopedJoinHandle};

use herma_core::cancellation::CancelReason;
use herma_core::contract::Terms;
use herma_core::event::{self, EventData, Source};
use herma_core::store::RunSummary;
use herma_core::{Contract, Fault, Step};
use herma_engines::Engine;
use herma_evidence::{Bundle, EventLog, RunUpdate, Trace};
use herma_policy::Policies;

use crate::error::Stop;
use crate::installation::Installation;
use crate::journal::Journal;
use crate::order::{Occasion, Order, Plan};
use crate::progress::Progress;
use crate::step_log::StepLog;
use crate::submission::{RunSubmission, Submission};
use herma_home::{RunDirs, remove_tree};

/// One run under way.
pub(crate) struct RunContext<'a> {
    pub(crate) installation: &'a Installation,
    pub(crate) contract: &'a Contract,
    pub(crate) order: &'a Order,
    pub(crate) occasion: Occasion<'a>,
    pub(crate) submission: &'a Submission,
    pub(crate) plan: Plan,
    pub(crate) dirs: RunDirs,
    pub(crate) bundle: Bundle,
    pub(crate) events: Arc<EventLog>,
    pub(crate) trace: Trace,
    pub(crate) journal: Journal,
    /// The policies for its tool calls.
    pub(crate) policies: Arc<Policies>,
    pub(crate) watch: &'a dyn Progress,
    /// Runs a child of it.
    pub(crate) run_child: RunSubmission,
    pub(crate) progress: StepProgress,
    pub(crate) log: StepLog,
}

/// The parts of a context that change during the run.
#[derive(Default)]
pub(crate) struct StepProgress {
    /// The step that the run is at; none before the first.
    at: Mutex<Option<Step>>,
    /// The contract's terms with the paths and actions of the target's admission in place of its own.
    admitted_terms: OnceLock<Terms>,
    /// Directory trees that are being removed.
    removals: Mutex<Vec<JoinHandle<()>>>,
}

impl<'a> RunContext<'a> {
    /// The run's engine.
    pub(crate) fn engine(&self) -> Result<&'a dyn Engine, Stop> {
        let engine = self.installation.engines.get(&self.plan.engine);
        engine.ok_or_else(|| Stop::internal("the engine is gone"))
    }

    /// Begins a step.
    pub(crate) fn step(&self, step: Step) -> Result<(), Stop> {
        self.watch.step(step);
        self.submission.feed.publish(RunUpdate::Step(step));
        if (Step::Gates..Step::Report).contains(&step) {
            self.check_cancelled()?;
        }
        *locked(&self.progress.at) = Some(step);
        self.log.begin(step);
        // The report seals the trace; the files that are there show the steps after it.
        if step <= Step::Report {
            self.trace.append(step)?;
        }
        self.meet(&Fault::Kill(step));
        Ok(())
    }

    /// Tells those who watch about work that takes a while.
    pub(crate) fn note(&self, text: &str) {
        self.watch.note(text);
        self.submission.feed.publish(RunUpdate::Note(text.to_owned()));
    }

    /// Kills herma here, where the run has this fault.
    pub(crate) fn meet(&self, fault: &Fault) {
        if self.order.fault.as_ref() == Some(fault) {
            let me = rustix::process::getpid();
            let _ = rustix::process::kill_process(me, rustix::process::Signal::KILL);
        }
    }

    /// Stops the run where it was cancelled, or where its parent's engine has ended.
    pub(crate) fn check_cancelled(&self) -> Result<(), Stop> {
        let orphaned =
            || self.is_orphan().then(|| "the engine of the run that asked for it has ended".to_owned());
        match self.cancelled_by().or_else(orphaned) {
            Some(why) => Err(Stop::Interrupted(why)),
            None => Ok(()),
        }
    }

    /// Whether the result of a wait is not needed any more.
    pub(crate) fn is_over(&self) -> bool {
        self.is_cancelled() || self.is_orphan()
    }

    /// Whether the run was cancelled.
    pub(crate) fn is_cancelled(&self) -> bool {
        self.submission.cancellation.is_cancelled()
    }

    /// Whether the run is a child whose parent's engine has ended.
    pub(crate) fn is_orphan(&self) -> bool {
        self.occasion.child_of.is_some_and(|parent| parent.is_over())
    }

    /// The reason for which the run was cancelled, and the step it was at.
    pub(crate) fn cancelled_by(&self) -> Option<String> {
        let reason = self.submission.cancellation.reason()?;
        let at = locked(&self.progress.at).unwrap_or(Step::Start);
        Some(match reason {
            CancelReason::Signal(signal) => format!("herma received {signal}, at the step `{at}`"),
            CancelReason::Request => format!("the run was cancelled, at the step `{at}`"),
        })
    }

    /// Makes steps and events so far durable, before an effect that a power cut does not undo.
    pub(crate) fn settle(&self) -> Result<(), Stop> {
        self.trace.settle()?;
        self.events.settle()?;
        Ok(self.bundle.settle()?)
    }

    /// Removes a directory tree in the background. The close of the run removes the rest.
    pub(crate) fn remove_aside(&self, dir: PathBuf) {
        let removal = std::thread::spawn(move || drop(remove_tree(&dir)));
        locked(&self.progress.removals).push(removal);
    }

    /// Waits until every tree is removed.
    pub(crate) fn join_removals(&self) {
        for removal in std::mem::take(&mut *locked(&self.progress.removals)) {
            let _ = removal.join();
        }
    }

    /// Records an observation by herma.
    pub(crate) fn record(&self, data: impl Into<EventData>) -> Result<(), Stop> {
        self.record_from(Source::Harness, &data.into())
    }

    /// Records an observation by the agent.
    pub(crate) fn record_agent(&self, data: impl Into<EventData>) -> Result<(), Stop> {
        self.record_from(Source::Agent, &data.into())
    }

    fn record_from(&self, source: Source, data: &EventData) -> Result<(), Stop> {
        let (kind, data) = (data.kind(), data.to_map());
        self.watch.event(kind, &event::note(&data));
        self.events.append(source, kind, data)?;
        self.log.recorded(kind);
        Ok(())
    }

    /// Adds the paths and actions of the target's admission to the rules of the run.
    pub(crate) fn narrow_to(&self, admitted: Option<Terms>) {
        if let Some(terms) = admitted {
            let _ = self.progress.admitted_terms.set(terms);
        }
    }

    /// The rules of the run: the contract's first, then those of the target's admission and of the parent run, which can only
    /// narrow them.
    pub(crate) fn effective_rules(&self) -> impl Iterator<Item = &Terms> {
        let above = self.occasion.child_of.into_iter().flat_map(|parent| &parent.terms);
        std::iter::once(&self.contract.terms).chain(self.progress.admitted_terms.get()).chain(above)
    }

    /// Its row in the store, while it is under way.
    pub(crate) fn summary(&self) -> RunSummary {
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
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The value of a thread, or that it panicked.
pub(crate) fn joined<T>(thread: ScopedJoinHandle<'_, T>) -> Result<T, Stop> {
    thread.join().map_err(|_| Stop::internal("a thread panicked"))
}

/// A serialised value as the bundle's files show it.
pub(crate) fn pretty(value: &impl serde::Serialize) -> Result<Vec<u8>, Stop> {
    let mut bytes = serde_json::to_vec_pretty(value).map_err(Stop::internal)?;
    bytes.push(b'\n');
    Ok(bytes)
}
