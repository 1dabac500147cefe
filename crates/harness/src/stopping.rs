//! Where a run goes no further: herma was told to end, nobody waits for it any more, or a step could not be taken. It is
//! closed all the same.

use herma_core::cancellation::CancelReason;
use herma_core::{Fault, Step};
use herma_evidence::RunUpdate;

use crate::error::Stop;
use crate::run::Run;

impl Run<'_> {
    /// Writes that a step is about to be taken.
    pub(crate) fn step(&mut self, step: Step) -> Result<(), Stop> {
        self.watch.step(step);
        self.submission.feed.publish(RunUpdate::Step(step));
        if (Step::Gates..Step::Report).contains(&step) {
            self.check_cancelled()?;
        }
        self.at = step;
        // The trace is sealed by the report; the steps after it show in which files are there.
        if step <= Step::Report {
            self.trace.append(step)?;
        }
        self.meet(&Fault::Kill(step));
        Ok(())
    }

    /// Kills herma here, where the run has this fault.
    pub(crate) fn meet(&self, fault: &Fault) {
        if self.order.fault.as_ref() == Some(fault) {
            let me = rustix::process::getpid();
            let _ = rustix::process::kill_process(me, rustix::process::Signal::KILL);
        }
    }

    /// Ends the run here, if there is a reason to that is not its own.
    pub(crate) fn check_cancelled(&mut self) -> Result<(), Stop> {
        let told = self.cancelled_by();
        let orphaned =
            || self.is_orphan().then(|| "the engine of the run that asked for it has ended".to_owned());
        let Some(why) = told.or_else(orphaned) else { return Ok(()) };
        self.facts.interrupted = Some(why);
        Err(Stop::Blocked)
    }

    /// Whether what the run waits for is not needed any more.
    pub(crate) fn is_over(&self) -> bool {
        self.submission.cancellation.is_cancelled() || self.is_orphan()
    }

    /// Whether it is a child whose parent's engine has ended: nobody waits for it any more.
    pub(crate) fn is_orphan(&self) -> bool {
        self.occasion.child_of.is_some_and(|parent| parent.is_over())
    }

    /// The reason for which the run was cancelled, and the step it was at.
    fn cancelled_by(&self) -> Option<String> {
        let at = self.at;
        Some(match self.submission.cancellation.reason()? {
            CancelReason::Signal(signal) => format!("herma was told to end by {signal}, at the step `{at}`"),
            CancelReason::Request => format!("the run was cancelled, at the step `{at}`"),
        })
    }

    /// A run that stopped early has touched the target as little as any other, and says so.
    pub(crate) fn witness_once_more(&mut self) {
        if self.facts.engine_started
            && self.facts.source_after.is_none()
            && self.facts.disposable_after.is_none()
            && let Err(Stop::Internal(why) | Stop::Write(why)) = self.witness_target()
        {
            self.facts.interrupted.get_or_insert(format!("the target could not be read: {why}"));
        }
    }

    /// Takes down why the run ended early, and says which errors were herma's own.
    pub(crate) fn note_stop(&mut self, stop: Option<Stop>) -> Option<String> {
        match (stop?, self.cancelled_by()) {
            (Stop::Blocked, _) => None,
            (Stop::Write(failure), _) => {
                self.installation.home.release_reserve();
                self.facts.write_failures.push(failure);
                None
            }
            // What it needed may have been told to end as well.
            (Stop::Destination(error) | Stop::Internal(error), Some(told)) => {
                self.facts.interrupted = Some(format!("{told}: {error}"));
                None
            }
            (Stop::Destination(error), None) => {
                self.facts.interrupted = Some(format!("the destination failed: {error}"));
                None
            }
            (Stop::Internal(error), None) => {
                self.installation.home.release_reserve();
                self.facts.interrupted = Some(format!("herma stopped by itself: {error}"));
                Some(error)
            }
        }
    }
}
