//! A run while it is under way: a live line on a terminal, plain lines otherwise.

use std::time::{Duration, Instant};

use herma_core::{EventType, RunId, Step};
use herma_harness::Progress;
use indicatif::{ProgressBar, ProgressStyle};

use crate::screen::{Screen, safe};

/// The name of a step in progress lines.
fn phase(step: Step) -> &'static str {
    match step {
        Step::Start => "starting",
        Step::Gates => "checking the gates",
        Step::Probe => "probing the confinement",
        Step::Workspace => "making the workspace",
        Step::Engine => "the engine works",
        Step::Collect => "collecting the result",
        Step::Check => "judging paths and actions",
        Step::Verify => "verifying on a fresh checkout",
        Step::Witness => "comparing the target",
        Step::Land => "landing the result",
        Step::Report => "writing the report",
        Step::Attest => "signing",
        Step::Close => "closing",
    }
}

/// A moving line, for a person.
pub(crate) struct Live {
    bar: ProgressBar,
}

/// Plain lines, for a log.
pub(crate) struct Plain<'a> {
    screen: &'a Screen,
    started: Instant,
}

/// The watcher that fits the screen.
pub(crate) fn watcher(screen: &Screen) -> Box<dyn Progress + '_> {
    if screen.is_live() { Box::new(Live::new()) } else { Box::new(Plain { screen, started: Instant::now() }) }
}

impl Live {
    fn new() -> Self {
        let bar = ProgressBar::new_spinner();
        if let Ok(style) = ProgressStyle::with_template("{spinner} {elapsed:>4} {prefix} {msg}") {
            bar.set_style(style);
        }
        bar.enable_steady_tick(Duration::from_millis(100));
        Self { bar }
    }
}

impl Progress for Live {
    fn step(&self, step: Step) {
        self.bar.set_prefix(phase(step));
        self.bar.set_message("");
    }

    fn note(&self, text: &str) {
        self.bar.set_message(safe(text).chars().filter(|c| *c != '\n').collect::<String>());
    }

    fn event(&self, kind: EventType, note: &str) {
        if matches!(kind, EventType::EngineMessage | EventType::ToolEvaluated) {
            let line: String = safe(note).chars().filter(|c| *c != '\n').take(60).collect();
            self.bar.set_message(line);
        }
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

impl Progress for Plain<'_> {
    fn started(&self, run_id: RunId) {
        if !self.screen.is_json() {
            self.screen.note(format_args!("run {run_id}"));
        }
    }

    fn step(&self, step: Step) {
        if !self.screen.is_json() {
            let elapsed = self.started.elapsed().as_secs_f32();
            self.screen.note(format_args!("{elapsed:6.2}s  {}", phase(step)));
        }
    }

    fn note(&self, text: &str) {
        if !self.screen.is_json() {
            let elapsed = self.started.elapsed().as_secs_f32();
            self.screen.note(format_args!("{elapsed:6.2}s    {}", safe(text)));
        }
    }
}
