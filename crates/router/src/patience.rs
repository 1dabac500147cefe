//! How long something may be waited for, without a timer for each wait.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep_until};

/// How long something may be waited for. Only waiting counts: a client that reads slowly is not the upstream's silence.
pub(crate) struct Patience {
    limit: Duration,
    /// Since when something is waited for.
    since: Option<Instant>,
    /// Made when it is first waited, and set anew only when it fires, so that chunks cost no timer.
    alarm: Option<Pin<Box<Sleep>>>,
}

impl Patience {
    pub(crate) fn new(limit: Duration) -> Self {
        Self { limit, since: None, alarm: None }
    }

    /// Something came.
    pub(crate) fn rewarded(&mut self) {
        self.since = None;
    }

    /// Ready when it was waited for too long.
    pub(crate) fn poll_over(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let end = *self.since.get_or_insert_with(Instant::now) + self.limit;
        let alarm = self.alarm.get_or_insert_with(|| Box::pin(sleep_until(end)));
        loop {
            ready!(alarm.as_mut().poll(cx));
            if Instant::now() >= end {
                return Poll::Ready(());
            }
            alarm.as_mut().reset(end);
        }
    }
}
