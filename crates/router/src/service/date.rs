//! The time as answers tell it.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use herma_core::{Clock, Timestamp};
use jiff::fmt::rfc2822::DateTimePrinter;

/// It tells seconds, so it is not made anew before half of one.
const KEPT: Duration = Duration::from_millis(500);

/// The time of a moment ago.
#[derive(Debug, Default)]
pub(super) struct Date(Mutex<Option<(Instant, Arc<str>)>>);

impl Date {
    /// The time as headers have it.
    pub(super) fn text(&self, clock: &dyn Clock) -> Arc<str> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        match &*kept {
            Some((made, text)) if now.duration_since(*made) < KEPT => text.clone(),
            _ => kept.insert((now, text(clock.now()).into())).1.clone(),
        }
    }
}

fn text(now: Timestamp) -> String {
    DateTimePrinter::new().timestamp_to_rfc9110_string(&now).unwrap_or_default()
}
