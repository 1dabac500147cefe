//! The real time: one wall-clock reading per process, advanced by a clock that never steps.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use herma_core::{Clock, Timestamp};
use jiff::SignedDuration;

/// The machine's clock: the one place where the time is read. Within a process it never goes back, and a step of the
/// wall clock does not reach it: every process reads the wall clock once and counts from there.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

static ANCHOR: OnceLock<Anchor> = OnceLock::new();

/// The wall clock and the monotonic clock, read at the same moment.
struct Anchor {
    wall: Timestamp,
    since: Instant,
}

impl Anchor {
    #[allow(clippy::disallowed_methods, reason = "this is the clock")]
    fn read() -> Self {
        // The wall clock first: a process that is preempted between the two is then late, never ahead of the others.
        let wall = Timestamp::now();
        Self { wall, since: Instant::now() }
    }

    fn after(&self, passed: Duration) -> Timestamp {
        let passed = SignedDuration::try_from(passed).unwrap_or(SignedDuration::MAX);
        self.wall.saturating_add(passed).unwrap_or(self.wall)
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        let anchor = ANCHOR.get_or_init(Anchor::read);
        anchor.after(anchor.since.elapsed())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_passes_from_one_reading_of_the_wall_clock() {
        let wall: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let anchor = Anchor { wall, since: Instant::now() };
        assert_eq!(anchor.after(Duration::from_millis(1_500)).to_string(), "2026-01-01T00:00:01.5Z");
        assert_eq!(anchor.after(Duration::MAX), Timestamp::MAX);
    }

    #[test]
    fn it_never_goes_back() {
        let mut before = SystemClock.now();
        for _ in 0..10_000 {
            let now = SystemClock.now();
            assert!(before <= now, "{before} {now}");
            before = now;
        }
    }
}
