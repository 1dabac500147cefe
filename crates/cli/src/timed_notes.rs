//! The notes of work without a run: each on a line with the time since the start.

use std::sync::Mutex;
use std::time::Instant;

use crate::screen::{Screen, safe_line};

/// Prints notes from now on; nothing with `--json`.
pub(crate) fn timed_notes(screen: &Screen) -> impl Fn(&str) + Sync + '_ {
    let (started, last) = (Instant::now(), Mutex::new(()));
    move |text: &str| {
        let _in_turn = last.lock();
        if !screen.is_json() {
            screen.note(format_args!("{:6.2}s  {}", started.elapsed().as_secs_f32(), safe_line(text)));
        }
    }
}
