//! An inactivity timer that costs no timer per wait.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep_until};

/// Limits how long something may be waited for. Only waiting counts: time without a poll is not the peer's silence.
#[derive(Debug)]
pub struct IdleTimeout {
    limit: Duration,
    waiting_since: Option<Instant>,
    /// Created at the first wait and reset only when it fires, so that chunks cost no timer.
    sleep: Option<Pin<Box<Sleep>>>,
}

impl IdleTimeout {
    /// A timer of this length, not yet running.
    #[must_use]
    pub fn new(limit: Duration) -> Self {
        Self { limit, waiting_since: None, sleep: None }
    }

    /// Stops the timer: there was activity.
    pub fn reset(&mut self) {
        self.waiting_since = None;
    }

    /// Starts the timer if it is stopped. Ready once it has elapsed.
    pub fn poll_elapsed(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let since = *self.waiting_since.get_or_insert_with(Instant::now);
        // A limit beyond the range of the clock never elapses.
        let Some(end) = since.checked_add(self.limit) else { return Poll::Pending };
        let sleep = self.sleep.get_or_insert_with(|| Box::pin(sleep_until(end)));
        loop {
            ready!(sleep.as_mut().poll(cx));
            if Instant::now() >= end {
                return Poll::Ready(());
            }
            sleep.as_mut().reset(end);
        }
    }
}
