//! Broadcast of a run's steps and events to subscribers in the same process.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use herma_core::{Event, Step};

/// One entry of a feed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunUpdate {
    /// The run is about to take this step.
    Step(Step),
    /// This event was appended to the log, in this form.
    Event(Event),
    /// A sentence about work that takes a while. It is no evidence.
    Note(String),
}

/// The updates of one run. It keeps all of them, so that a late subscriber misses none and a slow one delays nobody.
#[derive(Debug, Default)]
pub struct RunFeed {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    updates: Vec<RunUpdate>,
    closed: bool,
}

impl RunFeed {
    /// Appends an update and wakes every subscriber.
    pub fn publish(&self, update: RunUpdate) {
        self.state().updates.push(update);
        self.changed.notify_all();
    }

    /// Ends every subscription once it has delivered what there is.
    pub fn close(&self) {
        self.state().closed = true;
        self.changed.notify_all();
    }

    /// Every update from the first on, then those to come.
    #[must_use]
    pub fn subscribe(self: &Arc<Self>) -> RunUpdates {
        RunUpdates { feed: Arc::clone(self), next: 0 }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A subscription. As an iterator it blocks until the next update and ends when the run is closed.
#[derive(Clone, Debug)]
pub struct RunUpdates {
    feed: Arc<RunFeed>,
    next: usize,
}

/// The result of waiting for an update.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NextUpdate {
    /// The next one.
    Update(RunUpdate),
    /// None came in time.
    TimedOut,
    /// None will come: the run is closed.
    Closed,
}

impl RunUpdates {
    /// Waits at most this long for the next update.
    pub fn next_within(&mut self, timeout: Duration) -> NextUpdate {
        let feed = Arc::clone(&self.feed);
        let next = self.next;
        let none_yet = |state: &mut State| state.updates.len() <= next && !state.closed;
        let (state, _) = feed
            .changed
            .wait_timeout_while(feed.state(), timeout, none_yet)
            .unwrap_or_else(PoisonError::into_inner);
        match state.updates.get(next) {
            Some(update) => {
                self.next += 1;
                NextUpdate::Update(update.clone())
            }
            None if state.closed => NextUpdate::Closed,
            None => NextUpdate::TimedOut,
        }
    }
}

impl Iterator for RunUpdates {
    type Item = RunUpdate;

    fn next(&mut self) -> Option<RunUpdate> {
        loop {
            match self.next_within(Duration::from_hours(1)) {
                NextUpdate::Update(update) => return Some(update),
                NextUpdate::TimedOut => {}
                NextUpdate::Closed => return None,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn every_subscriber_sees_every_update_however_late_it_comes() {
        let feed = Arc::new(RunFeed::default());
        let steps = [Step::Start, Step::Gates, Step::Report].map(RunUpdate::Step);
        let mut early = feed.subscribe();
        assert_eq!(early.next_within(Duration::ZERO), NextUpdate::TimedOut);
        let live = thread::spawn(move || early.collect::<Vec<_>>());
        for step in &steps {
            feed.publish(step.clone());
        }
        feed.close();
        assert_eq!(live.join().unwrap(), steps);
        let mut late = feed.subscribe();
        assert_eq!(late.by_ref().collect::<Vec<_>>(), steps);
        assert_eq!(late.next_within(Duration::ZERO), NextUpdate::Closed);
    }
}
