//! The time as answers tell it.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use herma_model::{Clock, Timestamp};
use jiff::fmt::rfc2822::DateTimePrinter;

/// It tells seconds, so it is not made anew before half of one.
const KEPT: Duration = Duration::from_millis(500);

/// The time of a moment ago.
#[derive(Debug, Default)]
pub(super) struct Date(Mutex<Option<(Instant, String)>>);

impl Date {
    /// Hands the time to `tell`, as headers have it.
    pub(super) fn with<T>(&self, clock: &dyn Clock, tell: impl FnOnce(&str) -> T) -> T {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        match &mut *kept {
            Some((made, text)) if now.duration_since(*made) < KEPT => tell(text),
            kept => tell(&kept.insert((now, text(clock.now()))).1),
        }
    }
}

fn text(now: Timestamp) -> String {
    DateTimePrinter::new().timestamp_to_rfc9110_string(&now).unwrap_or_default()
}
