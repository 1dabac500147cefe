//! Log records of a run: a span for the run, and one inside it for each step. They carry names and numbers only, no text of
//! the contract or the agent.

use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use herma_core::{EventType, Step};
use tracing::{Span, debug, info, info_span};

/// The spans of a run.
pub(crate) struct StepLog {
    run: Span,
    current: Mutex<Option<StepSpan>>,
}

impl StepLog {
    pub(crate) fn new(run: Span) -> Self {
        Self { run, current: Mutex::default() }
    }

    /// The span of the run.
    pub(crate) fn run(&self) -> &Span {
        &self.run
    }

    /// Ends the span of the current step and begins that of the next.
    pub(crate) fn begin(&self, step: Step) {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        // The old span ends before the new one begins.
        *current = None;
        let span = info_span!(parent: &self.run, "step", name = step.as_str());
        span.in_scope(|| info!("step started"));
        *current = Some(StepSpan { span, started: Instant::now() });
    }

    /// Logs the type of a recorded event.
    pub(crate) fn recorded(&self, kind: EventType) {
        let current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        let span = current.as_ref().map_or(&self.run, |step| &step.span);
        span.in_scope(|| debug!(event = kind.as_str(), "event recorded"));
    }
}

/// The span of one step.
struct StepSpan {
    span: Span,
    started: Instant,
}

impl Drop for StepSpan {
    fn drop(&mut self) {
        let took_ms = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.span.in_scope(|| debug!(took_ms, "step ended"));
    }
}
