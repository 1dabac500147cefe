//! When an upstream is left alone for a while.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// So many strikes within [`WITHIN`] send an upstream to rest.
const STRIKES: usize = 3;
const WITHIN: Duration = Duration::from_mins(1);
const RESTS: Duration = Duration::from_secs(30);
/// The longest rest, whatever the upstream asks for.
const LONGEST: Duration = Duration::from_mins(10);

/// The strikes of one upstream. While there are none, nothing is locked.
#[derive(Debug, Default)]
pub struct Rest {
    marked: AtomicBool,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// When the last strikes were, oldest first.
    strikes: Vec<Instant>,
    until: Option<Instant>,
}

impl Rest {
    /// The upstream did not do its work: it was not reached, was overloaded, or broke off. Where it said when to come
    /// again, it rests until then.
    pub fn strike(&self, now: Instant, retry_after: Option<Duration>) {
        let mut state = self.state();
        state.strikes.retain(|strike| now.saturating_duration_since(*strike) < WITHIN);
        state.strikes.push(now);
        let mut rests = retry_after.unwrap_or_default().min(LONGEST);
        if state.strikes.len() >= STRIKES {
            state.strikes.clear();
            rests = rests.max(RESTS);
        }
        if rests > Duration::ZERO {
            // A later strike never shortens a rest.
            state.until = state.until.max(Some(now + rests));
        }
        self.marked.store(true, Ordering::Release);
    }

    /// How much longer it rests; `None` if it does not.
    pub fn resting(&self, now: Instant) -> Option<Duration> {
        if !self.marked.load(Ordering::Acquire) {
            return None;
        }
        let mut state = self.state();
        let left =
            state.until.map(|until| until.saturating_duration_since(now)).filter(|left| !left.is_zero());
        if left.is_none() {
            state.until = None;
        }
        left
    }

    /// The upstream answered: its strikes are forgotten. A rest that it is in goes on, for what answers now was asked
    /// before it.
    pub fn answered(&self) {
        if !self.marked.load(Ordering::Acquire) {
            return;
        }
        let mut state = self.state();
        state.strikes.clear();
        if state.until.is_none() {
            // Under the lock, so that no strike comes between.
            self.marked.store(false, Ordering::Release);
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
