//! The circuit breaker of one upstream: after several failures in a row it is skipped for a while.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// So many failures within [`FAILURE_WINDOW`] open the circuit.
const MAX_FAILURES: usize = 3;
const FAILURE_WINDOW: Duration = Duration::from_mins(1);
/// How long an open circuit stays open.
const OPEN_FOR: Duration = Duration::from_secs(30);
/// The longest time that an upstream is skipped, whatever its `retry-after` says.
const MAX_OPEN: Duration = Duration::from_mins(10);

/// Counts the failures of one upstream. Without any, nothing is locked.
#[derive(Debug, Default)]
pub struct CircuitBreaker {
    has_failures: AtomicBool,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The times of the last failures, oldest first.
    failures: Vec<Instant>,
    open_until: Option<Instant>,
}

impl CircuitBreaker {
    /// The upstream was not reached, was overloaded, or broke off. `retry_after` opens the circuit until then.
    pub fn record_failure(&self, now: Instant, retry_after: Option<Duration>) {
        let mut state = self.state();
        state.failures.retain(|failure| now.saturating_duration_since(*failure) < FAILURE_WINDOW);
        state.failures.push(now);
        let mut open_for = retry_after.unwrap_or_default().min(MAX_OPEN);
        if state.failures.len() >= MAX_FAILURES {
            state.failures.clear();
            open_for = open_for.max(OPEN_FOR);
        }
        if open_for > Duration::ZERO {
            // A later failure never closes the circuit earlier.
            state.open_until = state.open_until.max(Some(now + open_for));
        }
        self.has_failures.store(true, Ordering::Release);
    }

    /// How much longer the circuit is open; `None` where it is closed.
    pub fn retry_after(&self, now: Instant) -> Option<Duration> {
        if !self.has_failures.load(Ordering::Acquire) {
            return None;
        }
        let mut state = self.state();
        let left =
            state.open_until.map(|until| until.saturating_duration_since(now)).filter(|left| !left.is_zero());
        if left.is_none() {
            state.open_until = None;
        }
        left
    }

    /// The upstream responded: its failures are forgotten. An open circuit stays open, because the response is to a
    /// request from before.
    pub fn record_success(&self) {
        if !self.has_failures.load(Ordering::Acquire) {
            return;
        }
        let mut state = self.state();
        state.failures.clear();
        if state.open_until.is_none() {
            // Under the lock, so that no failure comes between.
            self.has_failures.store(false, Ordering::Release);
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
